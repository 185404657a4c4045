"""Loops and branches over few numbers: one kernel, every number in a variable."""
from funcgrad.compiler.codegen import Kernel
from funcgrad.compiler.graph import Nest


def is_small(node: Nest) -> bool:
    return False
def generate_small(node: Nest) -> Kernel:
    raise NotImplementedError
