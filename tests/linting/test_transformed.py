"""Faults are found whatever is done to the function that has them, however often it is linted."""

from __future__ import annotations

import subprocess
import sys

import pytest

import funcgrad as fg
from tests.linting.transformed import FAULTS, PARTS, UNSEEN, X, clean, missed, ways

WAYS = ways(fg, fg.lax)


def test_faults_are_found_in_the_function_itself() -> None:
    assert missed(lambda f: f, X) == []


@pytest.mark.sampled(12)
@pytest.mark.parametrize("way", WAYS)
def test_faults_are_found_in_what_is_made_of_it(way: str) -> None:
    assert missed(WAYS[way], X) == UNSEEN.get(way, [])
    assert not fg.lint(WAYS[way](clean), X)
    assert fg.check_derivatives(WAYS[way](clean), X + 0.1)


@pytest.mark.parametrize("way", ["jit", "scan", "checkpoint"])
def test_a_second_report_says_the_same(way: str) -> None:
    for rule in ("kink", "kink-of-choice", "jump", "singular-derivative", "overflow"):
        f = WAYS[way](FAULTS[rule])
        fg.grad(f)(X)
        first, second = (fg.lint(f, X) for _ in range(2))
        assert [*first] == [*second]
        assert first.by_rule(rule)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_under_the_names_of_jax(part: int) -> None:
    command = [sys.executable, "-m", "tests.linting.transformed", str(part)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == [
        f"{way}: {UNSEEN.get(way, [])} 0 True True" for way in [*WAYS][part::PARTS]
    ], ran.stderr
