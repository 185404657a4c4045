"""``autograd.tracer``: traced values, the values behind them, and functions with rules."""

from funcgrad.interop.autograd.boxes import Box, getval, isbox
from funcgrad.interop.autograd.extend import notrace_primitive, primitive, register_notrace

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace"]
