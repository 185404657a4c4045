"""Parameters of other libraries' signatures of which only the default is supported.

What cannot change a result is accepted: memory that may be overwritten, checks, precision, numbers
of threads, hints about how to compute. `tests/test_parameters_without_effect.py` lists it. Anything
else that a function does not honour is refused here.
"""

from __future__ import annotations

from typing import Any

from funcgrad.errors import ArgumentError


def only_defaults(function: str, **given: Any) -> None:
    """Raise if a parameter that is not supported was given.

    Args:
        function: How messages call the function.
        given: Values of parameters whose default is None or False.
    Raises: ArgumentError: If one of them is neither.
    """
    for name, value in given.items():
        if value is not None and value is not False:
            raise ArgumentError(
                f"{function}({name}={value!r:.40}) is not supported, and would change the result: "
                "only the default is."
            )
