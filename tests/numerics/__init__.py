"""How far results are from exact ones, and that they depend on nothing but the arguments.

``python -m tests.numerics --write`` measures all functions and writes `errors.json` and the tables
of docs/numerics.md.
"""
