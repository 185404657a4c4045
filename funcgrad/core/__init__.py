"""The calculus itself: abstract values, primitives, traces, typed programs.

Nothing here knows any particular primitive, transformation or compiler.
"""
