"""Runtime of compiled programs: tables, threads, the store of kernels on disk."""
