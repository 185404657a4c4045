"""Observers of the calculus: error messages, and searches for NaNs, leaks and impure functions.

They attach to the interpreters by `funcgrad.core.observers`, which knows none of them.
"""
