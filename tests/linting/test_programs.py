"""Faults in programs as users write them are found, at their lines."""

from __future__ import annotations

import pytest

import funcgrad as fg
from tests.linting import programs_at_points, programs_with_cuts
from tests.linting.programs import CLEAN, FAULTS, POINTS

__all__ = ["programs_at_points", "programs_with_cuts"]


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", FAULTS)
def test_faults_in_programs_of_users(name: str) -> None:
    rules, make = FAULTS[name]
    accepted = {*rules, *(POINTS if set(rules) <= set(POINTS) else ())}
    f, args = make()
    found = [finding for finding in fg.lint(f, *args) if finding.rule in accepted]
    assert any(finding.rule == "unused-argument" or _is_here(finding) for finding in found), found


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found_in_clean_programs_of_users(name: str) -> None:
    f, args = CLEAN[name]()
    assert not fg.lint(f, *args)


def _is_here(finding: fg.linting.Finding) -> bool:
    return finding.location is not None and finding.location.text().endswith("# here")
