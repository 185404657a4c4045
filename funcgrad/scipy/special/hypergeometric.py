"""Elliptic integrals and hypergeometric functions of `scipy.special`, a row each.

Elliptic integrals have derivatives in all arguments; hypergeometric functions in the last.
"""

from funcgrad.scipy.special.rows import ufunc

# Elliptic integrals and functions.
ellipk = ufunc(
    "ellipk", "Complete elliptic integral of the first kind.", "0.5 -> 1.8540746773013719"
)
ellipkm1 = ufunc(
    "ellipkm1", "`ellipk` of ``1 - p``, accurate near its singularity.", "0.5 -> 1.8540746773013719"
)
ellipe = ufunc(
    "ellipe", "Complete elliptic integral of the second kind.", "0.5 -> 1.3506438810476755"
)
ellipkinc = ufunc(
    "ellipkinc", "Incomplete elliptic integral of the first kind.", "0.5, 0.3 -> 0.5061402119623553"
)
ellipeinc = ufunc(
    "ellipeinc",
    "Incomplete elliptic integral of the second kind.",
    "0.5, 0.3 -> 0.49399114472896843",
)
ellipj = ufunc(
    "ellipj",
    "Jacobi's elliptic functions.",
    (
        "0.5, 0.3 -> "
        "(0.47421562271182066, 0.8804087364264624,\n"
        "0.9656789647459512, 0.4940728937110473)"
    ),
)
elliprc = ufunc(
    "elliprc", "Carlson's degenerate elliptic integral.", "2.0, 0.5 -> 1.0752916200648812"
)
elliprd = ufunc(
    "elliprd",
    "Carlson's elliptic integral of the second kind.",
    "1.0, 2.0, 3.0 -> 0.2904602810289907",
)
elliprf = ufunc(
    "elliprf",
    "Carlson's elliptic integral of the first kind.",
    "1.0, 2.0, 3.0 -> 0.7269459354689082",
)
elliprg = ufunc(
    "elliprg",
    "Carlson's completely symmetric elliptic integral of the second kind.",
    "1.0, 2.0, 3.0 -> 1.401847099990895",
)
elliprj = ufunc(
    "elliprj",
    "Carlson's elliptic integral of the third kind.",
    "1.0, 2.0, 3.0, 4.0 -> 0.23984809974956783",
)
agm = ufunc("agm", "Arithmetic-geometric mean.", "1.0, 2.0 -> 1.4567910310469068")

# Hypergeometric functions.
hyp0f1 = ufunc(
    "hyp0f1", "Confluent hypergeometric limit function.", "1.5, 0.5 -> 1.3682988720085911"
)
hyp1f1 = ufunc(
    "hyp1f1",
    "Confluent hypergeometric function of the first kind.",
    "1.0, 2.0, 0.5 -> 1.2974425414002564",
)
hyp2f1 = ufunc(
    "hyp2f1", "Gauss's hypergeometric function.", "1.0, 2.0, 3.0, 0.5 -> 1.545177444479562"
)
hyperu = ufunc(
    "hyperu",
    "Confluent hypergeometric function of the second kind.",
    "1.0, 2.0, 0.5 -> 1.9999999999999998",
)
