"""Seeded faults are found, and clean programs are left alone."""

from __future__ import annotations

import pytest

from tests.linting import seeding


@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.nightly)])
def test_seeded_faults_are_found(every: int, capsys: pytest.CaptureFixture[str]) -> None:
    code = seeding.main(["--every", str(every)])
    assert code == 0, capsys.readouterr().out
