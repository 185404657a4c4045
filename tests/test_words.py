"""Words: a docstring begins with a verb or a noun phrase, also of what is private.

Read from the sources: of modules, classes and functions, and the
strings and comments that describe names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.sources import SOURCES, nodes_of, text_of, tree_of

QUESTION = re.compile(r"(What|That|Those|These|Which|Whose|Where|Of|As|If|It)\b")
COMMENT = re.compile(r"^\s*# ((?:What|That|Those|These|Which|Whose)\b.*)", re.M)

PRIVATE = re.compile(
    r"(?<!ast\.)(?<!os\.)\b_?(?:walk(?:s|ed|er)?|is_turned|surroundings|deposits?|seldom|lent"
    r"|(?:hands?(?: (?:it|them|every \w+|a nan))?[ _]on))\b"
)
"""Words for which the field has others: iterate, transposed, captured, scatter-add, cold, view,
carry or propagate."""
OF_OTHERS = {"funcgrad.base.pytree", "funcgrad.linting.rules.keys"}
"""A method of JAX's, and a random walk."""


def descriptions(module: str) -> Iterator[tuple[int, str]]:
    """Lines and texts of all strings that stand alone, which are docstrings."""
    for node in (tree_of(module), *nodes_of(module)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.lineno, text
    for found in COMMENT.finditer(text_of(module)):
        yield text_of(module).count("\n", 0, found.start(1)) + 1, found.group(1)


def test_summaries_begin_with_a_verb_or_a_noun():
    wrong = {
        f"{module}:{line}: {text.splitlines()[0]}"
        for module in SOURCES
        for line, text in descriptions(module)
        if QUESTION.match(text)
    }
    assert not wrong, "\n".join(sorted(wrong))


def test_the_search_finds_questions():
    assert QUESTION.match("What is beyond the ends of an array.")
    assert QUESTION.match("Those of one matrix with elements.")
    assert not QUESTION.match("Padding modes.")
    assert COMMENT.search("x = 1\n    # That its dtype counts.\n")


def test_private_words_stay_away():
    found = {
        f"{module}: {word}"
        for module in SOURCES
        if module not in OF_OTHERS
        for word in PRIVATE.findall(text_of(module))
    }
    assert not found
