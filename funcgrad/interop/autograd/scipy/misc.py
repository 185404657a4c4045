"""``autograd.scipy.misc``: where older programs look for ``logsumexp``."""

from funcgrad.scipy.special import logsumexp

__all__ = ["logsumexp"]
