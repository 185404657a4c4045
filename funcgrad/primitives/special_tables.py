"""All primitives of ufuncs of `scipy.special`, by the names of these.

Those of `special` are there at once, the tables of the files ``special_*.py`` when one of theirs is
asked for.
"""

from __future__ import annotations

import functools

from funcgrad.base.imports import load
from funcgrad.core.primitive import Primitive
from funcgrad.primitives.special import SCIPY_UFUNCS


def primitive_of(ufunc: str) -> Primitive | None:
    """The primitive of a ufunc of `scipy.special`, or ``None``.

    Args: ufunc: Its name. The tables that few programs need are loaded when it is not one of
            `special`.
    """
    return SCIPY_UFUNCS.get(ufunc) or all_ufuncs().get(ufunc)


@functools.cache
def all_ufuncs() -> dict[str, Primitive]:
    """The primitives of all tables, by the names of the ufuncs of `scipy.special`."""
    tables = (
        load("funcgrad.primitives.special_bessel"),
        load("funcgrad.primitives.special_distributions"),
        load("funcgrad.primitives.special_elementary"),
        load("funcgrad.primitives.special_elliptic"),
        load("funcgrad.primitives.special_hypergeometric"),
    )
    return functools.reduce(lambda found, table: found | table.TABLE, tables, SCIPY_UFUNCS)
