"""Random programs: how they are drawn, what has to hold for them, and how failures are shrunk.

``python -m tests.fuzz --seconds 600 --seed 0`` runs as many as fit into the
time; see docs/reliability.md.
"""
