"""What runs compiled programs: tables, threads, the store of kernels on disk."""
