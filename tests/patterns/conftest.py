"""Derivatives of these tests are compiled in their first call."""

from __future__ import annotations

import pytest

from funcgrad.api import sparse_derivatives


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_derivatives, "MOST_WORK", -1)
