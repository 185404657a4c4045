"""What functions and classes say of themselves, without evaluating their annotations.

Since Python 3.14, annotations are evaluated when somebody asks for them. They may name what only
type checkers import, so that asking raises an error that no other use of the function would.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection
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
