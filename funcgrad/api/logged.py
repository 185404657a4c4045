"""Values of traced arrays in a log."""

from __future__ import annotations

import logging
from typing import Any

from funcgrad.api.debugging import check_format, debug_callback

_LOGGER = logging.getLogger("funcgrad.debug")


def debug_log(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Log a line from inside of a compiled function.

    As `debug_print`, but the line goes to the logger ``"funcgrad.debug"``, at the level INFO.

    Args: fmt: Format string, as of `str.format`.
    Raises: ArgumentError: If the format string and the arguments do not fit together.

    Example:
        >>> fg.debug.log("loss {:.3f}", 0.5)
    """
    check_format(fmt, args, kwargs)

    def write(*args: Any, **kwargs: Any) -> None:
        _LOGGER.info("%s", fmt.format(*args, **kwargs))

    debug_callback(write, *args, ordered=ordered, **kwargs)
