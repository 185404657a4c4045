"""Signatures of functions and classes, without evaluating their annotations.

Since Python 3.14, annotations are evaluated when somebody asks for them. They may name what only
type checkers import, so that asking raises an error that no other use of the function would.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any

if sys.version_info >= (3, 14):
    import annotationlib

    _FORM = annotationlib.Format.FORWARDREF

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """The signature of a function; names in annotations may have no meaning.

        Raises:
            TypeError: If it is no function.
            ValueError: If it does not tell.
        """
        return inspect.signature(function, annotation_format=_FORM)

    def annotated_names(cls: type) -> Collection[str]:
        """The names that the body of a class annotates."""
        return annotationlib.get_annotations(cls, format=_FORM)

else:

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """The signature of a function.

        Raises:
            TypeError: If it is no function.
            ValueError: If it does not tell.
        """
        return inspect.signature(function)

    def annotated_names(cls: type) -> Collection[str]:
        """The names that the body of a class annotates."""
        found: Collection[str] = inspect.get_annotations(cls)
        return found


def docstring(
    summary: str,
    meanings: Mapping[str, str],
    call: str = "",
    notes: str = "",
    returns: str = "",
    raises: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """A docstring with a summary, arguments and an example, of a function that others make.

    Args:
        summary: The first line.
        meanings: The meaning of each parameter by its name, a line each.
        call: A call and what Python shows for it: ``"fg.numpy.sin(0.0) -> np.float64(0.0)"``.
        notes: A paragraph below the summary.
        returns: The result, if there is more to say of it than the summary does.
        raises: Conditions by the names of errors.
    """
    sections = {
        "Args": [f"{name}: {meaning}" for name, meaning in meanings.items()],
        "Returns": [returns] if returns else [],
        "Raises": [f"{error}: {condition}" for error, condition in raises.items()],
        "Example": session(call).splitlines() if call else [],
    }
    texts = ["\n    ".join([f"{title}:", *rows]) for title, rows in sections.items() if rows]
    return "\n\n".join(filter(None, (summary, notes, *texts)))


def session(call: str) -> str:
    """An interactive session that imports what it needs, from a call and what Python shows."""
    source, _, shown = call.partition(" -> ")
    names = "import numpy as np, funcgrad as fg" if "np." in source else "import funcgrad as fg"
    return f">>> {names}\n>>> {source}\n{shown}"


def call_of(path: str, shows: str) -> str:
    """The example of a function from its arguments: of ``"0.0 -> 1.0"``, ``"path(0.0) -> 1.0"``."""
    return f"{path}({shows.replace(' -> ', ') -> ', 1)}" if shows else ""
