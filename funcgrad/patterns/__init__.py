"""Sparse derivatives below the interface: patterns of programs, colourings, and compression."""
