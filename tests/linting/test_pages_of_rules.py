"""The page of each rule, its docstring: why, and examples that give what they say."""

from __future__ import annotations

import doctest
import io
import re

import pytest

from docs.tools import lint_rules
from funcgrad.linting.rule import Rule
from funcgrad.linting.rules import RULES
from funcgrad.linting.script import main

EVERY = pytest.mark.parametrize("rule", RULES.values(), ids=[*RULES])
PARSER = doctest.DocTestParser()


def failures_of(examples: list[doctest.Example]) -> str:
    """What examples, in their order, give otherwise than they say."""
    out = io.StringIO()
    test = doctest.DocTest(examples, {}, "page", None, 0, None)
    doctest.DocTestRunner(verbose=False).run(test, out=out.write)
    return out.getvalue()


def examples_of(rule: Rule, section: str) -> list[doctest.Example]:
    return PARSER.get_examples(rule.sections[section] + "\n")


@EVERY
def test_the_page_says_what_and_why(rule: Rule) -> None:
    assert list(rule.sections) == ["What", "Why", "Found", "Not found"]
    for head in ("What", "Why"):
        assert re.fullmatch(r"[A-Z`][^\n].*\.", rule.sections[head], re.DOTALL)
    assert len(re.findall(r"\.(?:\s|$)", rule.sections["Why"])) == 1, "one sentence"


@EVERY
def test_the_examples_give_what_they_say(rule: Rule) -> None:
    found, clean = (examples_of(rule, section) for section in ("Found", "Not found"))
    assert found[-1].want == f"[{rule.name!r}]\n"
    assert clean[-1].want == "[]\n"
    assert not failures_of(found + clean)


@pytest.mark.sampled(8)
@EVERY
def test_a_comment_at_its_line_switches_the_rule_off(rule: Rule) -> None:
    off = f"  # lint: ignore[{rule.name}]\n"
    examples = [
        doctest.Example(example.source.replace("\n", off), example.want)
        for example in examples_of(rule, "Found")
    ]
    examples[-1].want = "[]\n"
    assert not failures_of(examples)


@EVERY
def test_the_site_and_the_command_show_it(rule: Rule, capsys: pytest.CaptureFixture[str]) -> None:
    assert f".. _lint-rule-{rule.name}:" in lint_rules.page()
    assert main(None, ["--rules", rule.name]) == 0
    shown = capsys.readouterr().out
    assert f"reference/lint_rules.html#{rule.name}\n" in shown
    assert f"# lint: ignore[{rule.name}]\n" in shown
    for text in rule.sections.values():
        assert text in lint_rules.page()
        assert all(line.strip() in shown for line in text.splitlines())


def test_the_command_lists_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(None, ["--rules"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [*RULES]
    assert main(None, ["--rules", "knik"]) == 2
    assert "no rule 'knik'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(None, [])
