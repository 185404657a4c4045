"""Primitives whose parameters are programs. Their rules are the transformations of those programs."""
