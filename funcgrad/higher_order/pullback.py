"""Pullbacks of cotangents at concrete values, with plain products in the place of ``scale``.

``scale`` keeps a cotangent of 0 at 0, whatever it is multiplied by, and the search for zeros takes
several times as long as the product. Both differ only where the product is nan, and linear
operations propagate nan to everything that depends on it. So a finite result was computed from
products that agree with ``scale``; a result that is not finite is computed again with ``scale``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from funcgrad.core.observers import OBSERVED
from funcgrad.core.primitive import is_own_module
from funcgrad.core.trace import EVAL, current_trace
from funcgrad.primitives.elementwise import LOOK_FOR_ZEROS, is_finite, takes_plain_products
from funcgrad.scalar_tape.trace import NumberMap
from funcgrad.transforms.linearize import LinearMap


@lru_cache(1024)
def _propagates_nan(kind: Any) -> bool:
    """Whether a class of operations propagates nan, and shows it to no rule of the user's."""
    return is_own_module(kind.__module__) and not kind.multiple_results


_FEW = 3
"""Fewer operations are not worth a look at the result, which takes as long as one at a product."""


def pulled(linear: LinearMap | NumberMap, cts: Sequence[Any]) -> list[Any]:
    """Cotangents of the inputs for cotangents of the outputs, as `LinearMap.pull` gives them.

    Args:
        linear: The derivative at a point.
        cts: Cotangents of the outputs, ``None`` for zeros.
    """
    is_watched = current_trace() is not EVAL or OBSERVED.computed
    if type(linear) is not LinearMap or is_watched or len(linear.entries) < _FEW:
        return linear.pull(cts)
    kinds: set[Any] = {type(entry.primitive) for entry in linear.entries}
    if kinds.isdisjoint(LOOK_FOR_ZEROS) or linear.point or not all(map(_propagates_nan, kinds)):
        return linear.pull(cts)
    # It changes nothing yet: Ctrl-C may come before the next line.
    token = takes_plain_products.set(takes_plain_products.get())
    try:
        takes_plain_products.set(True)
        with np.errstate(invalid="ignore"):
            found = linear.pull(cts)
            for ct in found:
                if ct is not None and not is_finite(np.asarray(ct)):
                    break
            else:
                return found
    finally:
        takes_plain_products.reset(token)
    return linear.pull(cts)
