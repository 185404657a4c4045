"""A class that is registered as a pytree."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from funcgrad import tree_util


@tree_util.register_dataclass
@dataclass
class Layer:
    w: Any
    kind: str = field(metadata={"static": True})
