"""NumPy's error state while the library computes, and while code of others runs within it.

Derivatives meet poles that results do not have, and kernels report nothing; so warnings of NumPy
are off while either is computed. What its caller has set on purpose (to raise, call, print or log)
stays in force in derivatives, and callbacks run in the state of whoever called the library.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any, Self

import numpy as np

State = dict[str, Any]
_AS_IT_IS = nullcontext()
_of_caller: ContextVar[State | None] = ContextVar("funcgrad_error_state_of_caller", default=None)
"""The state outside of the outermost block that has changed it."""


class _Block:
    """A block with another error state, entered twice: ``with block() as outer, outer:``.

    Ctrl-C may arrive between any two of its steps: what was changed until then is undone. It may
    also arrive where `__exit__` begins, before anything there catches it; then the outer one undoes
    what the inner one did not.
    """

    _is_open = False

    def __enter__(self) -> Self:
        if self._is_open:
            return self
        self._before: State = np.geterr()  # type: ignore[assignment]
        self._state = np.errstate(**self.changed(self._before))
        self._outer = _of_caller.get()
        self._token = _of_caller.set(self._outer)  # changes nothing yet
        try:
            _of_caller.set(self._outer or self._before)
            self._state.__enter__()
        except BaseException:
            self._undo()
            raise
        self._is_open = True
        return self

    def __exit__(self, *error: Any) -> None:
        if not self._is_open:
            return
        self._is_open = False
        try:
            self._state.__exit__(*error)
            _of_caller.reset(self._token)
        except BaseException:
            self._undo()
            raise

    def _undo(self) -> None:
        """Set what was, wherever entering or leaving was interrupted."""
        np.seterr(**self._before)
        _of_caller.set(self._outer)

    def changed(self, before: State) -> State:
        """The state within."""
        raise NotImplementedError


class without_warnings(_Block):
    """For derivatives: nothing is warned of."""

    def changed(self, before: State) -> State:
        return {kind: "ignore" for kind, how in before.items() if how == "warn"}


class without_reports(_Block):
    """For what compiled programs let NumPy compute: nothing is reported, as in kernels."""

    def changed(self, before: State) -> State:
        return dict.fromkeys(before, "ignore")


def of_caller() -> AbstractContextManager[Any]:
    """For functions of others: the state of whoever called the library.

    Where Ctrl-C interrupts it, the block of the library around it sets what was before.
    """
    state = _of_caller.get()
    return _AS_IT_IS if state is None else np.errstate(**state)
