"""Classes and modules of other packages are as they were, until a change of them is asked for."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import asyncio, concurrent.futures, copyreg, logging, pickle, sys, types
import numba, numpy as np, scipy.linalg, scipy.sparse, scipy.special, scipy.stats

def members():
    found = {}
    for path, module in list(sys.modules.items()):
        if path.startswith(("funcgrad", "__")) or not isinstance(module, types.ModuleType):
            continue
        for name, value in list(vars(module).items()):
            found[path, name] = value
            if isinstance(value, type):
                found |= {(path, name, key): of_class for key, of_class in vars(value).items()}
    of_numba = numba.core.typing.typeof.typeof_impl.registry
    tables = (copyreg.dispatch_table, pickle._Pickler.dispatch, of_numba)
    found |= {(i, key): value for i, table in enumerate(tables) for key, value in table.items()}
    return found

before = members()
import funcgrad as fg
import funcgrad.numpy, funcgrad.scipy.special, funcgrad.scipy.sparse
fg.grad(np.sin)(1.0)
fg.jit(lambda x: np.linalg.solve(x, x) @ np.exp(x))(np.eye(3))
fg.vmap(lambda x: fg.random.normal(fg.random.key(0), (3,)) * x)(np.ones(3))
try:
    fg.grad(numba.njit(lambda x: x))(1.0)
except TypeError:
    pass
fg.grad(fg.interop.numba.traceable(numba.njit(lambda x: x)))(1.0)
after = members()
names = {key[:2] for key in before if len(key) == 3}
changed = [key for key, value in before.items() if after.get(key, after) is not value]
changed += [key for key in after.keys() - before.keys() if len(key) == 3 and key[:2] in names]
print(changed)
"""


def test_nothing_of_others_is_replaced():
    run = subprocess.run([sys.executable, "-c", _PROGRAM], check=True, capture_output=True)
    assert run.stdout.decode().strip() == "[]"
