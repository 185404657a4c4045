"""`funcgrad.numpy` as this library calls it: functions that take and give values.

What users call gives arrays inside of transformations that can be assigned to, and that stand for
their value then; `Primitive.bind` wants the value. Code of the library that is written with
NumPy's names therefore says ``import funcgrad.numpy.values as fnp``.
"""

from __future__ import annotations

from typing import Any

import funcgrad.numpy as public


def __getattr__(name: str) -> Any:
    found = public.value_functions.get(name)
    if found is None:
        found = getattr(public, name)
    globals()[name] = found
    return found
