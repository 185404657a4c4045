"""``autograd.numpy.numpy_jvps``: autograd's forward rules of NumPy's functions, by their names.

funcgrad's rules are those of its primitives (docs/adding_a_primitive.md).
"""
