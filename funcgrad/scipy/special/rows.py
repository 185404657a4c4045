"""The public functions of ufuncs of `scipy.special`: their arguments by position or by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from funcgrad.base.signatures import call_of, docstring, rows_of, with_dtype
from funcgrad.numpy.elementwise import of_scipy
from funcgrad.primitives.special_tables import primitive_of

Function = Callable[..., Any]


MEANINGS = {
    "cv": "Characteristic value.",
    "d": "The statistic.",
    "df": "Degrees of freedom.",
    "dfd": "Degrees of freedom of the denominator.",
    "dfn": "Degrees of freedom of the numerator.",
    "delta": "Bound from which on the loss is linear.",
    "gamma": "Half width of the Lorentz profile at half height.",
    "k": "Number of successes or events.",
    "lmb": "Exponent of the variable.",
    "lmbda": "Exponent of the transformation.",
    "m": "Order.",
    "mn": "Mean.",
    "n": "Degree.",
    "nc": "Parameter of noncentrality.",
    "nu": "Order of the Bessel function.",
    "p": "Probability.",
    "phi": "Amplitude, an angle in radians.",
    "q": "Parameter of the equation.",
    "r": "Residual.",
    "sigma": "Standard deviation of the Gaussian profile.",
    "std": "Standard deviation.",
    "v": "Order.",
    "z": "Argument, real or complex.",
    **dict.fromkeys(("a", "alpha"), "First parameter."),
    **dict.fromkeys(("b", "beta"), "Second parameter."),
    "c": "Third parameter.",
}
"""The meaning of an argument by its name; others are the argument of the function."""
FAMILIES: dict[tuple[str, ...], dict[str, str]] = {
    ("ellip",): {"m": "Parameter, the square of the modulus.", "p": "Fourth argument."},
    ("eval_sh_jacobi",): {"p": "First parameter.", "q": "Second parameter."},
    ("pdtr",): {"m": "Mean number of events.", "y": "Probability."},
    ("bdtr",): {
        "n": "Number of trials.",
        "p": "Probability of a success.",
        "y": "Probability.",
    },
    ("nbdtr",): {
        "n": "Number of successes.",
        "p": "Probability of a success.",
        "y": "Probability.",
    },
    ("binom",): {"n": "Number of elements to choose from.", "k": "Number of chosen elements."},
    ("smirnov",): {"n": "Number of samples."},
    ("chdtr",): {"v": "Degrees of freedom."},
    ("betaincinv", "betainccinv", "gammaincinv", "gammainccinv"): {"y": "Probability."},
    ("pro_", "obl_"): {"c": "Parameter of the spheroid."},
    ("radian",): {"d": "Degrees.", "m": "Minutes.", "s": "Seconds."},
    ("owens_t",): {"h": "Lower bound.", "a": "Slope."},
}
"""Other meanings in functions whose names begin so."""


def ufunc(name: str, summary: str, shows: str, arguments: str = "") -> Function:
    """The public function of a ufunc of `scipy.special`.

    Args:
        name: The name of the function.
        summary: What it computes.
        shows: Arguments of the example, and what Python shows, without the dtype of a number:
            ``"0.5 -> 0.25"`` for ``np.float64(0.25)``.
        arguments: Names of the arguments, separated by blanks; by default those of the primitive,
            or ``x``.
    """
    primitive: Any = primitive_of(name)
    names = tuple(arguments.split()) or getattr(primitive, "arguments", ("x",))
    results: tuple[str, ...] = getattr(primitive, "results", ())
    compute = of_scipy(primitive)

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != len(names):
            args = _ordered(name, names, args, kwargs)
        out = compute(*args)
        return tuple(out) if results else out

    function.__name__ = function.__qualname__ = name
    function.__module__ = __package__
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    vars(function)["__signature__"] = inspect.Signature(
        [inspect.Parameter(argument, kind) for argument in names]
    )
    broadcast = {"ValueError": "If the arguments do not broadcast."}
    meanings = {q: MEANINGS.get(q, "Argument.") for q in names}
    for prefixes, others in FAMILIES.items():
        if name.startswith(prefixes):
            meanings |= {q: others[q] for q in names if q in others}
    function.__doc__ = docstring(
        summary,
        meanings,
        call_of(f"fg.scipy.special.{name}", with_dtype(shows)),
        f"Elementwise, as `scipy.special.{name}`; arguments are arrays or numbers, and broadcast.",
        f"``({', '.join(results)})``." if results else "The values, floating or complex.",
        {"DtypeError": "If an argument is not of numbers.", **(broadcast if names[1:] else {})},
    )
    return function


def ufuncs(table: str) -> dict[str, Function]:
    """The functions of a table by their names.

    Args: table: Arguments of `ufunc` in rows of a text, ``name arguments | summary | shows``.
    """
    found = {}
    for names, summary, shows in rows_of(table):
        name, _, arguments = names.partition(" ")
        found[name] = ufunc(name, summary, shows, arguments)
    return found


def _ordered(
    name: str, names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """All arguments in order."""
    rest = names[len(args) :]
    unknown = [k for k in kwargs if k not in rest]
    if len(args) > len(names) or unknown or len(kwargs) != len(rest):
        given = f"{len(args)} arguments" + "".join(f", {k}=" for k in kwargs)
        raise TypeError(f"{name}({', '.join(names)}) got {given}.")
    return (*args, *(kwargs[k] for k in rest))
