"""Sample arguments of every ufunc of the tables of `funcgrad.primitives.special_*`.

A row gives, for a function, the range of every argument, or a list of values that it has; where a
range is given as a list of integers the argument counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from funcgrad.primitives.special import SCIPY_UFUNCS
from funcgrad.primitives.special_tables import all_ufuncs

Range = tuple[float, float] | list[Any]

P, Q = (0.2, 0.8), (0.15, 0.6)
"""Probabilities."""
SHAPE, SCALE = (1.2, 3.0), (0.6, 2.0)
ORDER = [0.3, 1.0, 2.5]
COUNT = [3.0, 4.0, 6.0]
FEW = [1.0, 0.0, 2.0]
SPHEROIDAL: tuple[Range, ...] = ([0.0, 1.0, 1.0], [1.0, 1.0, 2.0], [3.0, 4.0, 5.0])
CHARACTERISTIC: dict[str, Range] = {
    shape: list(getattr(scipy.special, f"{shape}_cv")(*SPHEROIDAL)) for shape in ("pro", "obl")
}

SAMPLES: dict[str, tuple[Range, ...]] = {
    # Distributions.
    "betaincc": (SHAPE, SHAPE, P),
    "betaincinv": (SHAPE, SHAPE, P),
    "betainccinv": (SHAPE, SHAPE, P),
    "btdtria": (P, SHAPE, P),
    "btdtrib": (SHAPE, P, P),
    "stdtr": (SHAPE, (-2, 2)),
    "stdtrit": (SHAPE, P),
    "stdtridf": ((0.76, 0.79), (1.0, 1.1)),
    "nctdtr": ((3.0, 5.0), (0.2, 0.8), (0.5, 1.5)),
    "nctdtrit": ((3.0, 5.0), (0.2, 0.8), P),
    "nctdtridf": ([0.5, 0.55, 0.6], [0.5, 0.5, 0.5], [0.6, 0.7, 0.8]),
    "nctdtrinc": ((3.0, 5.0), P, (0.5, 1.5)),
    "chdtr": (SHAPE, SHAPE),
    "chdtrc": (SHAPE, SHAPE),
    "chdtri": (SHAPE, P),
    "chdtriv": (P, SHAPE),
    "gdtr": (SCALE, SHAPE, SHAPE),
    "gdtrc": (SCALE, SHAPE, SHAPE),
    "gdtria": (P, SHAPE, SHAPE),
    "gdtrib": (SCALE, P, SHAPE),
    "gdtrix": (SCALE, SHAPE, P),
    "pdtr": (FEW, SHAPE),
    "pdtrc": (FEW, SHAPE),
    "pdtri": (FEW, P),
    "pdtrik": (P, (3.0, 5.0)),
    "chndtr": ((1.5, 4.0), SHAPE, SCALE),
    "chndtrix": (P, SHAPE, SCALE),
    "chndtrinc": ((3.0, 4.0), (1.2, 1.6), (0.3, 0.5)),
    "chndtridf": ((3.0, 4.0), (0.3, 0.6), (0.3, 0.6)),
    "fdtr": (SHAPE, SHAPE, SCALE),
    "fdtrc": (SHAPE, SHAPE, SCALE),
    "fdtri": (SHAPE, SHAPE, P),
    "fdtridfd": (SHAPE, (0.3, 0.4), SCALE),
    "ncfdtr": ((3.0, 5.0), (3.0, 5.0), SCALE, SCALE),
    "ncfdtri": ((3.0, 5.0), (3.0, 5.0), SCALE, P),
    "ncfdtridfd": ([3.0, 4.0, 5.0], [0.3, 0.35, 0.4], [0.5, 0.6, 0.7], [0.7, 0.9, 1.0]),
    "ncfdtridfn": ([0.42, 0.47, 0.49], [3.0, 4.0, 5.0], [0.5, 0.6, 0.7], [0.7, 0.9, 1.0]),
    "ncfdtrinc": ([3.0, 4.0, 5.0], [3.0, 4.0, 5.0], [0.3, 0.35, 0.4], [0.9, 1.0, 1.2]),
    "bdtr": (FEW, COUNT, P),
    "bdtrc": (FEW, COUNT, P),
    "bdtri": (FEW, COUNT, P),
    "bdtrik": (P, COUNT, Q),
    "bdtrin": ([1.0, 2.0, 3.0], Q, Q),
    "nbdtr": (FEW, COUNT, P),
    "nbdtrc": (FEW, COUNT, P),
    "nbdtri": (FEW, COUNT, P),
    "nbdtrik": (P, COUNT, Q),
    "nbdtrin": (COUNT, Q, Q),
    "ndtri_exp": ((-5.0, -0.5),),
    "nrdtrimn": (P, SCALE, SCALE),
    "nrdtrisd": ((0.0, 0.5), (0.6, 0.9), SCALE),
    "owens_t": ((-1.0, 1.0), (0.3, 2.0)),
    "kolmogorov": ((0.5, 1.5),),
    "kolmogi": (P,),
    "smirnov": ([3, 5, 8], (0.2, 0.5)),
    "smirnovi": ([3, 5, 8], P),
    "tklmbda": ((-0.4, 0.4), (0.3, 0.8)),
    # Elementary.
    "loggamma": ((0.5, 3.0),),
    "gammasgn": ((-0.9, 0.9),),
    "poch": (SHAPE, SCALE),
    "zetac": ((1.5, 3.0),),
    "_stirling2_inexact": ([5.0, 8.0, 9.0], [2.0, 3.0, 4.0]),
    "_riemann_zeta": ((1.5, 3.0),),
    "boxcox": (SCALE, (-0.8, 1.2)),
    "boxcox1p": (SCALE, (-0.8, 1.2)),
    "inv_boxcox": ((0.1, 0.7), (0.2, 1.2)),
    "inv_boxcox1p": ((0.1, 0.7), (0.2, 1.2)),
    "powm1": (SCALE, (-0.8, 1.2)),
    "erfi": ((-1.0, 1.0),),
    "wofz": ((-1.0, 1.0),),
    "voigt_profile": ((-1.0, 1.0), SCALE, SCALE),
    "expn": ([0, 1, 4], SCALE),
    "sici": (SCALE,),
    "shichi": (SCALE,),
    "fresnel": ((-1.0, 1.0),),
    "wrightomega": ((-1.0, 1.0),),
    "wright_bessel": (SCALE, SCALE, SCALE),
    "log_wright_bessel": (SCALE, SCALE, SCALE),
    "sindg": ((-60.0, 60.0),),
    "cosdg": ((-60.0, 60.0),),
    "tandg": ((-60.0, 60.0),),
    "cotdg": ((20.0, 60.0),),
    "radian": ((0.0, 90.0), (0.0, 60.0), (0.0, 60.0)),
    "round": ((0.6, 1.4),),
    "huber": ((0.5, 0.6), [-1.2, 0.3, 0.9]),
    "pseudo_huber": (SCALE, (-1.0, 1.0)),
    # Bessel functions.
    **dict.fromkeys(["jv", "jve", "yv", "yve", "iv", "ive", "kv", "kve"], (ORDER, (0.7, 3.0))),
    **dict.fromkeys(["hankel1", "hankel1e", "hankel2", "hankel2e"], (ORDER, (0.7, 3.0))),
    **dict.fromkeys(["kn", "yn"], ([0, 1, 3], (0.7, 3.0))),
    **{
        f"_spherical_{kind}n{end}": ([0, 1, 3], (0.7, 3.0)) for kind in "jyik" for end in ("", "_d")
    },
    "airy": ((-1.0, 1.5),),
    "airye": ((0.3, 1.5),),
    **dict.fromkeys(["itairy", "itj0y0", "iti0k0", "it2j0y0", "it2i0k0"], ((0.7, 2.0),)),
    "besselpoly": (SCALE, SCALE, ORDER),
    "struve": (ORDER, SCALE),
    "modstruve": (ORDER, SCALE),
    **dict.fromkeys(["itstruve0", "it2struve0", "itmodstruve0"], (SCALE,)),
    **dict.fromkeys(["ber", "bei", "ker", "kei", "berp", "beip", "kerp", "keip"], (SCALE,)),
    **dict.fromkeys(["pbdv", "pbvv", "pbwa"], (ORDER, SCALE)),
    "mathieu_a": ([1.0, 2.0, 3.0], SCALE),
    "mathieu_b": ([1.0, 2.0, 3.0], SCALE),
    **dict.fromkeys(["mathieu_cem", "mathieu_sem"], ([1.0, 2.0, 3.0], SCALE, (20.0, 60.0))),
    **{
        f"mathieu_mod{kind}": ([1.0, 2.0, 3.0], SCALE, (0.5, 1.0))
        for kind in ("cem1", "cem2", "sem1", "sem2")
    },
    "pro_cv": SPHEROIDAL,
    "obl_cv": SPHEROIDAL,
    **{
        f"{shape}_{part}{end}": (*SPHEROIDAL, *[CHARACTERISTIC[shape]] * bool(end), x)
        for shape in ("pro", "obl")
        for part in ("ang1", "rad1", "rad2")
        for end in ("", "_cv")
        for x in [(1.5, 2.5) if part.startswith("rad") else (0.2, 0.8)]
    },
    # Elliptic and hypergeometric functions, polynomials.
    "elliprd": (SCALE, SCALE, SCALE),
    "elliprf": (SCALE, SCALE, SCALE),
    "elliprg": (SCALE, SCALE, SCALE),
    "elliprc": (SCALE, [0.7, 1.3, -0.8]),
    "elliprj": (SCALE, SCALE, SCALE, SCALE),
    **dict.fromkeys(["ellipk", "ellipkm1", "ellipe"], ([0.2, 0.5, 0.9],)),
    "agm": (SCALE, SCALE),
    "ellipkinc": ([-1.0, 0.7, 4.0], [-0.5, 0.3, 0.8]),
    "ellipeinc": ([-1.0, 0.7, 4.0], [-0.5, 0.3, 0.8]),
    "ellipj": ((-1.0, 1.0), [0.2, 0.5, 0.8]),
    "hyp0f1": (SCALE, (-1.0, 1.0)),
    "hyp1f1": (SCALE, SHAPE, (-1.0, 1.0)),
    "hyp2f1": (SCALE, SCALE, SHAPE, (-0.8, 0.6)),
    "hyperu": (SCALE, SCALE, SCALE),
    "lpmv": ([0.0, 1.0, 2.0], [1.3, 2.0, 3.2], (-0.7, 0.7)),
    **dict.fromkeys(
        ["eval_jacobi", "eval_sh_jacobi"], ([0, 1, 4], (2.0, 3.0), (0.5, 1.0), (0.1, 0.9))
    ),
    **dict.fromkeys(["eval_gegenbauer", "eval_genlaguerre"], ([0, 1, 4], SCALE, (0.1, 0.9))),
    **{
        f"eval_{name}": ([0, 1, 4], (0.1, 0.9))
        for name in (
            "laguerre", "legendre", "sh_legendre", "chebyt", "chebyu", "chebyc", "chebys",
            "sh_chebyt", "sh_chebyu", "hermite", "hermitenorm",
        )
    },
}  # fmt: skip

NAMES = sorted(all_ufuncs().keys() - SCIPY_UFUNCS.keys())
"""Ufuncs of the tables."""


def sample(name: str, dtype: Any = np.float64) -> list[Any]:
    """Arguments of a function; those that count are int64."""
    primitive: Any = all_ufuncs()[name]
    dtype, rng = np.dtype(dtype), np.random.default_rng(len(name))
    size = np.empty(0, dtype).real.dtype
    args: list[Any] = []
    for i, spread in enumerate(SAMPLES[name]):
        if isinstance(spread, list) and i < primitive.integers:
            args.append(np.array(spread, np.int64))
            continue
        is_list = isinstance(spread, list)
        x = np.array(spread, float) if is_list else np.sort(rng.uniform(*spread, 3))
        is_argument = i >= primitive.orders
        if is_argument and dtype.kind == "c":
            args.append((x + 1j * rng.uniform(0.2, 0.6, 3)).astype(dtype))
        else:
            args.append(x.astype(size))
    return args
