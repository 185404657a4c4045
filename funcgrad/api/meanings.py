"""Meanings of the parameters that functions of `funcgrad.api` share, for their docstrings."""

MEANINGS = {
    "allow_int": "Whether integer arguments are allowed; their gradient has dtype ``float0``.",
    "argnums": "Position, or positions, of the arguments to differentiate.",
    "*args": "Pytrees of arrays and of other objects.",
    "backend": '``"cpu"``, if anything.',
    "callback": "Gets arrays, returns arrays.",
    "f": "Function of arrays or pytrees.",
    "*fmt_args": "Arrays or numbers for the gaps, or pytrees of them.",
    "**fmt_kwargs": "The same for gaps with names.",
    "fun": "Maps arrays or pytrees to an array or a pytree.",
    "has_aux": (
        "Whether ``fun`` returns a pair of the value and extra results, which are passed on "
        "undifferentiated."
    ),
    "holomorphic": "Whether ``fun`` is complex and holomorphic.",
    "**kwargs": "Keyword arguments, likewise.",
    "msg": "What is wrong otherwise, with gaps as of `str.format`.",
    "nondiff_argnames": "The same by name.",
    "ordered": "Accepted for compatibility; callbacks always run in program order.",
    "pred": "A bool, which must be true.",
    "static_argnames": "The same by name.",
    "static_argnums": "Positions of arguments that are Python values, not arrays.",
    "x": "A pytree of arrays and numbers.",
}
