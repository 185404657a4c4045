"""Seeded faults are found, and clean programs are left alone."""

from __future__ import annotations

import pytest

from tests.linting import seeding

QUICK = ["--every", "240", *(x for name in ("benchmarks", "posteriors", "laws")
                            for x in ("--corpus", name))]  # fmt: skip


@pytest.mark.parametrize(
    "options", [QUICK, pytest.param([], marks=pytest.mark.nightly)], ids=["sample", "all"]
)
def test_seeded_faults_are_found(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code = seeding.main(options)
    assert code == 0, capsys.readouterr().out
