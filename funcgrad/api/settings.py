"""JAX's flags: those that mean something here, under their names.

What can be chosen for a block can be chosen for the rest of the thread: ``config.update(name,
value)``. What becomes of traced indices out of bounds, ``"out_of_bounds"``, can be chosen for the
process. Flags about how XLA works, or about traces of errors, take any value and change nothing.
Others are refused, with the reason.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, NamedTuple

from funcgrad.api.compilation import clear_caches
from funcgrad.api.debugging import checking_leaks, debug_infs, debug_nans
from funcgrad.api.precision import numpy_dtype_promotion, numpy_rank_promotion
from funcgrad.base.index_rule import INDEX_RULE
from funcgrad.errors import ArgumentError
from funcgrad.higher_order.jit import disable_jit

_Block = Callable[[Any], AbstractContextManager[Any]]

_BLOCKS: dict[str, tuple[_Block, Any]] = {
    "jax_check_tracer_leaks": (checking_leaks, False),
    "jax_debug_infs": (debug_infs, False),
    "jax_debug_nans": (debug_nans, False),
    "jax_disable_jit": (disable_jit, False),
    "jax_numpy_dtype_promotion": (numpy_dtype_promotion, "standard"),
    "jax_numpy_rank_promotion": (numpy_rank_promotion, "allow"),
}
"""Flags with a block of their own, and what they are at first."""

_FIXED: dict[str, tuple[tuple[Any, ...], str]] = {
    "jax_enable_x64": (
        (True,),
        "results have the dtypes that NumPy gives, with 64 bits where nothing else is asked for; "
        "for 32 bits make arrays with dtype=np.float32, which stays float32 "
        "(docs/keeping_float32.md)",
    ),
    "jax_default_dtype_bits": (("64", 64), "ask for dtype=np.float32 where arrays are made"),
    "jax_platform_name": (("cpu", "", None), "there is one platform, 'cpu'"),
    "jax_platforms": (("cpu", "", None), "there is one platform, 'cpu'"),
    "jax_default_device": ((None,), "there is one device, the CPU"),
    "jax_default_prng_impl": (("threefry2x32",), "keys are threefry2x32 keys"),
    "jax_threefry_partitionable": ((True,), "splitting keys is as JAX does it with True"),
    "jax_enable_custom_prng": ((False,), "keys are arrays of two words"),
    "jax_disable_most_optimizations": ((False,), "use disable_jit() to see operations one by one"),
    "jax_array": ((True,), "arrays are numpy.ndarray"),
    "jax_pmap_no_rank_reduction": ((True, False), ""),
}
"""Flags with values that say what is the case: those values, and why there are no others."""

_FREE: dict[str, Any] = {
    "jax_compilation_cache_dir": None,
    "jax_default_matmul_precision": None,
    "jax_enable_compilation_cache": True,
    "jax_enable_empty_arrays": True,
    "jax_include_full_tracebacks_in_locations": False,
    "jax_explain_cache_misses": False,
    "jax_legacy_prng_key": "allow",
    "jax_log_checkpoint_residuals": False,
    "jax_log_compiles": False,
    "jax_logging_level": None,
    "jax_num_cpu_devices": None,
    "jax_optimization_level": None,
    "jax_persistent_cache_enable_xla_caches": "",
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pprint_use_color": True,
    "jax_softmax_custom_jvp": True,
    "jax_traceback_filtering": "auto",
    "jax_transfer_guard": None,
    "xla_force_host_platform_device_count": None,
}
"""Flags that change no result, and what they are at first."""


class _Entered(NamedTuple):
    """A block that gives a flag its value, and the thread that entered it."""

    name: str
    value: Any
    block: AbstractContextManager[Any]
    thread: int


class Config:
    """The flags, as attributes; see `update`.

    Example:
        >>> import funcgrad as fg
        >>> fg.config.update("jax_enable_x64", True)
        >>> fg.config.jax_enable_x64
        True
    """

    def __init__(self) -> None:
        known = {name: first for name, (_, first) in _BLOCKS.items()}
        fixed = {name: values[0] for name, (values, _) in _FIXED.items()}
        self._values: dict[str, Any] = {**known, **fixed, **_FREE}
        self._entered: list[_Entered] = []
        atexit.register(self._leave)

    def _leave(self) -> None:
        """Leave the blocks that were entered, while what they need is still there."""
        while self._entered:
            with suppress(ValueError):  # one that another thread has entered
                self._entered.pop().block.__exit__(None, None, None)

    def update(self, name: str, value: Any) -> None:
        """Give a flag a value, from now on, in this thread.

        Args:
            name: Its name in JAX, such as ``"jax_debug_nans"``; or ``"out_of_bounds"``, for
                ``"raise"`` or, as in JAX, ``"clamp"``, in all threads.
            value: Its value.
        Raises: ArgumentError: If there is no such flag here, or it does not take the value.

        Example:
            >>> import funcgrad as fg
            >>> fg.config.update("jax_enable_x64", False)
            Traceback (most recent call last):
            ...
            funcgrad.errors.ArgumentError: config: jax_enable_x64 is True, and cannot be False: ...
        """
        if name == "out_of_bounds":
            if INDEX_RULE.choose(value):
                clear_caches()  # of what was traced under the other rule
            return
        block = self._checked(name, value)
        if block is not None and value != self._values[name]:
            self._enter(name, value, block)
        self._values[name] = value

    def _enter(self, name: str, value: Any, block: AbstractContextManager[Any]) -> None:
        """Enter the block of a value, and leave the one of the flag's value before."""
        thread = threading.get_ident()
        others: list[_Entered] = []
        has_left = False
        # Blocks end in the order opposite to that in which they began, in their own thread.
        if all(entered.thread == thread for entered in self._entered):
            while any(entered.name == name for entered in self._entered):
                last = self._entered.pop()
                last.block.__exit__(None, None, None)
                if last.name == name:
                    has_left = True
                else:
                    others.append(last)
        for other in reversed(others):
            again = other._replace(block=_BLOCKS[other.name][0](other.value))
            again.block.__enter__()
            self._entered.append(again)
        if not has_left or value != _BLOCKS[name][1]:
            block.__enter__()
            self._entered.append(_Entered(name, value, block, thread))

    def _checked(self, name: str, value: Any) -> AbstractContextManager[Any] | None:
        """The block of a value that a flag takes, if it has one."""
        if name in _BLOCKS:
            return _BLOCKS[name][0](value)
        if name in _FIXED:
            values, reason = _FIXED[name]
            if value not in values:
                now = self._values[name]
                raise ArgumentError(
                    f"config: {name} is {now!r}, and cannot be {value!r}: {reason}."
                )
        elif name not in _FREE:
            raise ArgumentError(
                f"config: there is no flag {name!r} here. Those that have an effect are "
                f"{', '.join(_BLOCKS)} and out_of_bounds."
            )
        return None

    def read(self, name: str) -> Any:
        """The value of a flag.

        Raises: ArgumentError: If there is none of that name.
        """
        if name == "out_of_bounds":
            return INDEX_RULE.name
        if name not in self._values:
            self._checked(name, None)
        return self._values[name]

    @property
    def values(self) -> dict[str, Any]:
        """All flags and their values."""
        return {**self._values, "out_of_bounds": INDEX_RULE.name}

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit types are enabled, which is always the case."""
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("jax_") or name == "out_of_bounds":
            try:
                return self.read(name)
            except ArgumentError as error:
                raise AttributeError(str(error), name=name) from None
        raise AttributeError(f"config has no attribute {name!r}.", name=name)

    def parse_flags_with_absl(self) -> None:
        """Nothing: flags are not read from the command line."""

    def config_with_absl(self) -> None:
        """Nothing: flags are not read from the command line."""


config = Config()


@contextmanager
def _block(name: str, value: Any) -> Iterator[None]:
    """A block in which a flag has a value."""
    block = config._checked(name, value)
    if block is None:
        yield
    else:
        with block:
            yield


def enable_x64(new_val: bool = True) -> AbstractContextManager[None]:
    """A block with 64 bits, as they are always there.

    Args: new_val: True.
    Raises: ArgumentError: When the block is entered, if it is False.

    Example:
        >>> with fg.enable_x64():
        ...     print(fg.numpy.ones(2).dtype)
        float64
    """
    return _block("jax_enable_x64", new_val)


def default_matmul_precision(new_val: Any = None) -> AbstractContextManager[None]:
    """A block whose products have a precision: always the full one of their dtype.

    Args: new_val: A name of a precision; it changes nothing.

    Example:
        >>> with fg.default_matmul_precision("highest"):
        ...     print(np.ones((1, 2)) @ np.ones(2))
        [2.]
    """
    return _block("jax_default_matmul_precision", new_val)


def log_compiles(new_val: bool = True) -> AbstractContextManager[None]:
    """A block for programs that ask JAX to log: the environment variable FUNCGRAD_DEBUG does it.

    Args: new_val: Changes nothing; `jit` counts its compilations in ``f.cache_info()``.

    Example:
        >>> with fg.log_compiles():
        ...     print(fg.jit(lambda x: x + 1)(1.0))
        2.0
    """
    return _block("jax_log_compiles", new_val)
