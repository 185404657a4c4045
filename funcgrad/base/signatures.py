"""Signatures of functions and classes, without evaluating their annotations.

Since Python 3.14, annotations are evaluated when somebody asks for them. They may name what only
type checkers import, so that a look-up raises an error that no other use of the function would.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import CodeType, FunctionType, MappingProxyType
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

    def annotations_of(cls: type) -> dict[str, Any]:
        """The names that the body of a class annotates, with their annotations."""
        return annotationlib.get_annotations(cls, format=_FORM)

else:

    def signature_of(function: Callable[..., Any]) -> inspect.Signature:
        """The signature of a function.

        Raises:
            TypeError: If it is no function.
            ValueError: If it does not tell.
        """
        return inspect.signature(function)

    def annotations_of(cls: type) -> dict[str, Any]:
        """The names that the body of a class annotates, with their annotations."""
        return inspect.get_annotations(cls)


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


def explain(names: Mapping[str, Any], meanings: Mapping[str, str]) -> None:
    """Write the docstrings of a module's or a class's functions in full, as `write_out` does.

    Private functions stay as they are.

    Args:
        names: The names of a module, ``globals()``, or of a class; imported ones do not count.
        meanings: The meaning of each parameter of the family by its name.

    Example:
        >>> def f(x, n):
        ...     '''Sum of both.
        ...
        ...     Args:
        ...         n: A number.
        ...     '''
        >>> explain({"__name__": __name__, "f": f}, {"x": "An array."})
        >>> print(f.__doc__)
        Sum of both.
        <BLANKLINE>
            Args:
                x: An array.
                n: A number.
        <BLANKLINE>
    """
    home = names.get("__name__") or names["__module__"]
    for name, function in names.items():
        if (
            type(function) is FunctionType
            and function.__module__ == home
            and not name.startswith("_")
            and function.__doc__  # Python may leave docstrings away
        ):
            function.__doc__ = explained(function, meanings)


_TABLES: dict[str, Mapping[str, str]] = {}
_COMPLETE: dict[int, str] = {}
"""Docstrings that are written in full, by their ids: functions that wrap others share theirs."""


def share(package: str, meanings: Mapping[str, str]) -> None:
    """Let the public functions of a package share meanings of their parameters (`write_out`).

    Args:
        package: Its name. Packages in it have these meanings, too, unless their own table differs.
        meanings: The meaning of each parameter by its name.
    """
    _TABLES[package] = meanings
    _shared.cache_clear()


@lru_cache(4096)
def _shared(module: str) -> Mapping[str, str]:
    """Meanings that the packages around a module share; inner ones have the last word."""
    outer = _shared(module.rpartition(".")[0]) if module else {}
    return {**outer, **_TABLES[module]} if module in _TABLES else outer


def write_out(value: Any) -> None:
    """Write the sections of a docstring in full: of a function, or of a class and its methods.

    In sources, a section of one paragraph may stand behind its heading, and an example of one call
    before its result, ``Example: fg.numpy.sin(0.0) -> np.float64(0.0)``. Examples get their imports
    of NumPy and of funcgrad. A docstring of a function explains the parameters that are particular
    to it; the others come from what its package shares, unless that lacks one.
    """
    doc = getattr(value, "__doc__", None)
    if id(doc) in _COMPLETE or not isinstance(value, FunctionType | type):
        return
    if not value.__module__.startswith("funcgrad"):
        return
    original = inspect.unwrap(value)
    members = vars(value).values() if isinstance(value, type) else ()
    methods = [getattr(member, "__func__", member) for member in members]
    meanings = _shared(original.__module__)
    if doc:
        value.__doc__ = explained(value, meanings)
        _COMPLETE[id(value.__doc__)] = value.__doc__
    if original is not value and isinstance(original, FunctionType | type) and original.__doc__:
        is_same = original.__doc__ == doc  # as of a function that wraps it
        original.__doc__ = value.__doc__ if is_same else explained(original, meanings)
    for method in methods:
        if isinstance(method, FunctionType) and method.__doc__:
            method.__doc__ = explained(method, {})


def in_full(doc: str) -> str:
    """A docstring whose sections have headings on lines of their own, and whose examples import."""
    if "Example: " in doc or "Returns: " in doc or "Args: " in doc or "Raises: " in doc:
        doc = _SHORT.sub(_section, doc)
    return _BARE.sub(_with_imports, doc)


def _section(found: re.Match[str]) -> str:
    margin, title, text = found.groups()
    if title == "Example":
        call, arrow, shown = _ARROW.split(text, 1)
        # Further lines of a result are aligned with the first one, behind the arrow.
        shown = shown.replace("\n" + " " * (len(arrow) + 2), f"\n{margin}    ")
        text = f">>> {call}\n{margin}    {shown}"
    return f"\n\n{margin}{title}:\n{margin}    {text}"


def _with_imports(found: re.Match[str]) -> str:
    heading, margin = found.groups()
    command, _, rest = found.string[found.end() :].partition("\n")
    if ">>> " in rest or "... " in rest:
        command = "\n".join(_COMMAND.findall(found.string, found.end()))
    needed = _imports(command)
    return f"{heading}{margin}>>> {needed}\n{margin}" if needed else found[0]


def explained(function: Callable[..., Any], meanings: Mapping[str, str]) -> str:
    """The docstring of a function, with meanings of the parameters that it does not explain.

    So it is of a class that is made by an ``__init__`` of its own.
    """
    doc = in_full(function.__doc__ or "")
    make = (
        vars(function).get("__init__") if isinstance(function, type) else inspect.unwrap(function)
    )
    if not meanings or not isinstance(make, FunctionType) or "Attributes:" in doc:
        return doc
    names = [n for n in parameter_names(make.__code__) if n != "self"]
    section = _ARGUMENTS.search(doc) if "Args:\n" in doc else None
    own = {name: meaning for _, name, meaning in _ARGUMENT.findall(section[2])} if section else {}
    missing = [n for n in names if n not in own and n.strip("*") not in own]
    if not missing or not meanings.keys() >= {*missing}:
        return doc
    known = {**meanings, **{n.strip("*"): meaning for n, meaning in own.items()}}
    rest = doc.replace(section[0], "", 1) if section else doc
    return with_arguments(rest, {n: known[n if n in missing else n.strip("*")] for n in names})


def with_arguments(doc: str, meanings: Mapping[str, str]) -> str:
    """A docstring with a section on arguments, before those on results, errors and examples."""
    found = _SECTION.search(doc)
    end, margin = (found.start(), found[1]) if found else (len(doc), "")
    rows = [f"{margin}    {name}: {meaning}" for name, meaning in meanings.items()]
    text = "\n".join([f"\n\n{margin}Args:", *rows])
    return f"{doc[:end]}{text}{doc[end:]}"


def parameter_names(code: CodeType) -> list[str]:
    """Names of parameters; those of any number with their stars, at the end."""
    n, names = code.co_argcount + code.co_kwonlyargcount, [*code.co_varnames]
    if not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return names[:n]
    stars = ["*"] * bool(code.co_flags & inspect.CO_VARARGS)
    stars += ["**"] * bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return names[:n] + [star + name for star, name in zip(stars, names[n:], strict=False)]


_MODULES = (
    ("np.", re.compile(r"\bnp\.").search, "numpy as np"),
    ("fg.", re.compile(r"\bfg\.").search, "funcgrad as fg"),
)
_SHORT = re.compile(r"\n{1,2}( *)(Args|Returns|Raises|Example): (?=\S)(.*(?:\n\1 {4}.*)*)")
# Patterns that begin with letters are found in the least time.
_BARE = re.compile(r"(Example:\n)( *)(?=>>> )")
_COMMAND = re.compile(r">>> .*(?:\n *\.\.\. .*)*")
_NUMBER = re.compile(r"-?(?:inf|nan|\d[\d.e+-]*j?)")
_NUMBERS = re.compile(rf"{_NUMBER.pattern}|\({_NUMBER.pattern}(?:,\s{_NUMBER.pattern})+\)")
_ARROW = re.compile(r"( |\n *)-> ")
_SECTION = re.compile(r"\n\n( *)(Returns|Raises|Example):\n")
_ARGUMENTS = re.compile(r"\n\n( *)Args:((?:\n\1 +.*)+)")
_ARGUMENT = re.compile(r"\n( +)(\*{0,2}\w+): (.*(?:\n\1 +.*)*)")


def session(call: str) -> str:
    """An interactive session that imports what it needs, from a call and what Python shows."""
    source, _, shown = call.partition(" -> ")
    return f">>> {_imports(source)}\n>>> {source}\n{shown}"


def _imports(source: str) -> str:
    """The statement that imports NumPy and funcgrad where a text needs them."""
    modules = [
        text
        for name, is_used, text in _MODULES
        if name in source and text not in source and is_used(source)
    ]
    return f"import {', '.join(modules)}" if modules else ""


def rows_of(table: str) -> list[list[str]]:
    """The cells of a table in a text: rows such as ``name | summary | example``.

    Indented lines belong to the row above them; lines that begin with ``#`` are comments.
    """
    rows = [row for row in re.split(r"\n(?=\S)", table.strip()) if not row.startswith("#")]
    return [[x.replace("\n    ", "\n") for x in re.split(r"\s+\| ", row)] for row in rows]


def call_of(path: str, shows: str) -> str:
    """The example of a function from its arguments: of ``"0.0 -> 1.0"``, ``"path(0.0) -> 1.0"``."""
    return f"{path}({shows.replace(' -> ', ') -> ', 1)}" if shows else ""


def with_dtype(shows: str) -> str:
    """An example with the dtypes of the numbers it shows: ``np.float64(1.0)`` for ``1.0``."""
    given, arrow, shown = shows.partition(" -> ")
    if not _NUMBERS.fullmatch(shown):
        return shows

    def typed(found: re.Match[str]) -> str:
        return f"np.{'complex128' if found[0].endswith('j') else 'float64'}({found[0]})"

    return given + arrow + _NUMBER.sub(typed, shown)
