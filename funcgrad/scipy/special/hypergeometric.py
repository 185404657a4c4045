"""Elliptic integrals and hypergeometric functions of `scipy.special`, a row each.

Elliptic integrals have derivatives in all arguments; hypergeometric functions in the last.
"""

from __future__ import annotations

from funcgrad.scipy.special.rows import ufunc

# Elliptic integrals and functions.
ellipk = ufunc("ellipk", "Complete elliptic integral of the first kind.")
ellipkm1 = ufunc("ellipkm1", "`ellipk` of ``1 - p``, accurate near its singularity.")
ellipe = ufunc("ellipe", "Complete elliptic integral of the second kind.")
ellipkinc = ufunc("ellipkinc", "Incomplete elliptic integral of the first kind.")
ellipeinc = ufunc("ellipeinc", "Incomplete elliptic integral of the second kind.")
ellipj = ufunc("ellipj", "Jacobi's elliptic functions.")
elliprc = ufunc("elliprc", "Carlson's degenerate elliptic integral.")
elliprd = ufunc("elliprd", "Carlson's elliptic integral of the second kind.")
elliprf = ufunc("elliprf", "Carlson's elliptic integral of the first kind.")
elliprg = ufunc("elliprg", "Carlson's completely symmetric elliptic integral of the second kind.")
elliprj = ufunc("elliprj", "Carlson's elliptic integral of the third kind.")
agm = ufunc("agm", "Arithmetic-geometric mean.")

# Hypergeometric functions.
hyp0f1 = ufunc("hyp0f1", "Confluent hypergeometric limit function.")
hyp1f1 = ufunc("hyp1f1", "Confluent hypergeometric function of the first kind.")
hyp2f1 = ufunc("hyp2f1", "Gauss's hypergeometric function.")
hyperu = ufunc("hyperu", "Confluent hypergeometric function of the second kind.")
