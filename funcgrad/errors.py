"""Every error that funcgrad raises on purpose, and every warning.

Each class derives from `FuncgradError` and from the builtin exception that a Python user would
catch. A message says what happened, where (the user's file and line) and what to do now.
"""

# Texts are made where the facts are; this file names the kinds, and imports nothing of funcgrad.

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "ArgumentError", "AxisError", "AxisNameError", "CacheError", "CompilerError",
    "ConcretizationTypeError", "DistributedError", "DtypeError", "FailedCheckError",
    "FileFormatError", "FuncgradError", "FuncgradWarning", "ImpureFunctionWarning", "KeyArrayError",
    "LibraryError", "LongProgramWarning", "MemoryBudgetError", "MemoryLimitError",
    "MissingRuleError", "NonConcreteBooleanIndexError", "NonFiniteError", "OutOfBoundsError",
    "ProgramTypeError", "ProgressWarning", "PythonLoopWarning", "ShapeError", "StackError",
    "TimeLimitError", "TracerArrayConversionError", "TracerBoolConversionError",
    "TracerIntegerConversionError", "TreeError", "UnexpectedTracerError", "UnpicklableError",
    "UntestedVersionWarning",
]  # fmt: skip


class FuncgradError(Exception):
    """Base class of all errors raised by funcgrad."""


class _MisuseError(FuncgradError, TypeError, ValueError):
    """Whether a wrong argument is a wrong type or a wrong value is a matter of taste.

    NumPy and JAX often raise different ones for the same mistake; programs that were written for
    either catch these.
    """


class TreeError(_MisuseError):
    """Pytrees do not have the structure that an operation needs, or cannot be registered."""


class DtypeError(_MisuseError):
    """An array has a dtype that funcgrad, or this operation, does not support."""


class KeyArrayError(DtypeError):
    """An array of random keys met an operation on numbers.

    Attributes:
        keys: The array.
    """

    def __init__(self, text: str, keys: Any = None) -> None:
        super().__init__(text)
        self.keys = keys


class DtypePromotionError(DtypeError):
    """Operands of different dtypes met where their promotion was to be an error."""


class ShapeError(_MisuseError):
    """Shapes do not fit together."""


class ArgumentError(_MisuseError):
    """An argument of a public function is of the wrong kind or value."""


class ProgramTypeError(FuncgradError, AssertionError):
    """A typed program is ill-formed: a defect of funcgrad, never of its user."""


class MissingRuleError(FuncgradError, NotImplementedError):
    """A primitive declares that a transformation does not exist for it."""


class ConcretizationTypeError(FuncgradError, TypeError):
    """Python needed the value of a traced array, which has none while a function is traced."""


class TracerBoolConversionError(ConcretizationTypeError):
    """`if`, `while`, `and`, `or` or `bool()` needed the value of a traced array."""


class TracerIntegerConversionError(ConcretizationTypeError):
    """A Python integer was needed (an index, a shape, a length) but the value is traced."""


class TracerArrayConversionError(ConcretizationTypeError):
    """NumPy asked for the values of a traced array."""


class NonConcreteBooleanIndexError(FuncgradError, IndexError):
    """A traced boolean mask was used as an index: the result's shape would depend on values."""

    selection: Any = None
    """The elements of which an array was needed, if that came later."""


class UnexpectedTracerError(FuncgradError, RuntimeError):
    """A traced value outlived the transformation that made it."""


class AxisError(FuncgradError, np.exceptions.AxisError):
    """An axis that an array does not have.

    Attributes:
        axis: The axis that was asked for.
        ndim: How many there are.
    """

    def __init__(self, message: str, axis: int | None = None, ndim: int | None = None) -> None:
        super().__init__(message)
        self.args = (message,)  # NumPy's class leaves there what it was made of
        self.axis = axis
        self.ndim = ndim

    def __str__(self) -> str:
        return str(self.args[0])


class AxisNameError(FuncgradError, NameError):
    """A collective names an axis that no surrounding `vmap` has."""


class MemoryBudgetError(FuncgradError, MemoryError):
    """A checkpointed function cannot keep to its memory budget."""


class TimeLimitError(FuncgradError, TimeoutError):
    """A block of `limits` has taken longer than its time limit."""


class MemoryLimitError(FuncgradError, MemoryError):
    """A compiled program would need more memory than the limit of `limits`."""


class IndexTypeError(_MisuseError, IndexError):
    """An index is of something that no index can be made of."""


class OutOfBoundsError(FuncgradError, IndexError):
    """An index lies outside its axis."""


class NonFiniteError(FuncgradError, FloatingPointError):
    """An operation gave a NaN or an infinity, while `debug_nans` or `debug_infs` was on.

    Attributes:
        kind: ``"nan"`` or ``"inf"``.
        operation: What made it; ``None`` if it came in from outside.
        line: The user's line, as ``file.py:14   text``; ``None`` if it is unknown.
        operands: Values that the operation got.
        result: The value in which it is.
        steps: Steps of the loops around it, from the inside outwards.
    """

    def __init__(
        self,
        message: str,
        kind: str = "nan",
        operation: str | None = None,
        line: str | None = None,
        operands: tuple[Any, ...] = (),
        result: Any = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.operation = operation
        self.line = line
        self.operands = operands
        self.result = result
        self.steps: list[str] = []


class FailedCheckError(FuncgradError, ValueError):
    """A check of `funcgrad.checkify` has failed, in the function itself or automatically."""


class CacheError(FuncgradError, OSError):
    """The folder of compiled kernels cannot be used."""


class FileFormatError(FuncgradError, ValueError):
    """A file of data or of parameters is damaged, incomplete, or something else than expected."""


class LibraryError(FuncgradError, ImportError):
    """A library or a program that was asked for is not there, or is not what it should be."""


class UnpicklableError(FuncgradError, TypeError):
    """Something that belongs to its process was to be pickled: a traced or compiled program."""


class StackError(FuncgradError, RecursionError):
    """A thread has too little stack left to trace a function."""


class DistributedError(FuncgradError, RuntimeError):
    """Processes that compute together cannot, or do not do the same."""


class CompilerError(FuncgradError, RuntimeError):
    """Generated code did not compile: a defect of funcgrad, reported with the source."""


class FuncgradWarning(UserWarning):
    """Base class of all warnings of funcgrad."""


class ImpureFunctionWarning(FuncgradWarning):
    """A traced function has used something that changes, and whose changes will not be seen."""


class LongProgramWarning(FuncgradWarning):
    """A loop that Python has unrolled made a very long program."""


class PythonLoopWarning(FuncgradWarning):
    """A compiled loop calls Python in every iteration."""


class UntestedVersionWarning(FuncgradWarning):
    """A library is newer than all that were tested; a slower way is taken, which it promises."""


class ProgressWarning(FuncgradWarning):
    """A loop was asked to show its progress, and tqdm is not installed."""
