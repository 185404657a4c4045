"""Primitives that hold programs; their rules are the transformations of those programs."""
