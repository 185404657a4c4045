"""stub"""
from __future__ import annotations
from typing import Any
def expit(x: Any) -> Any:
    e = (-x.absolute()).call("exp")
    r = 1.0 / (1.0 + e)
    return (x >= 0).select(r, e * r)
FORMULAS = {"expit": expit}
