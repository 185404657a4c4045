"""Imports that Ctrl-C does not leave half done.

Numba's and llvmlite's modules import each other in circles, and others stand aside meanwhile: after
an import that was interrupted, the next one fails, and so does every function that is compiled from
then on. Signals reach Python in the main thread alone, so another one does the work. The main
thread waits for it; if that is interrupted, the import goes on, and the next one waits for it.
"""

from __future__ import annotations

import importlib
import threading
from contextvars import copy_context
from types import ModuleType

from funcgrad.forking import held_by_forks

_LOCK = held_by_forks()
"""Held while modules are imported: a child would find the locks of half of them closed."""


class _Importer(threading.Thread):
    """Imports a module that another thread waits for, perhaps with locks held."""


def is_importing() -> bool:
    """Whether this thread is one of them."""
    return isinstance(threading.current_thread(), _Importer)


def import_whole(name: str) -> ModuleType:
    """A module, which is imported to its end even if the caller is interrupted.

    Args:
        name: Its full name.

    Raises:
        BaseException: What the import raises.
    """
    done: list[ModuleType] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with _LOCK:
                done.append(importlib.import_module(name))
        except BaseException as error:  # raised where it is waited for
            errors.append(error)

    if threading.current_thread() is threading.main_thread():
        run = copy_context().run
        thread = _Importer(target=run, args=(work,), name="funcgrad-import")
        try:
            thread.start()
        except RuntimeError:  # none can be started any more, as the process ends
            work()
        else:
            thread.join()
    else:
        work()
    if errors:
        raise errors[0]
    return done[0]
