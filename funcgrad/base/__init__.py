"""The ground: tables, locks, records, signatures and trees, on which everything else stands."""
