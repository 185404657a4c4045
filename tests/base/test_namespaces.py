"""What completion shows of public modules, and what they answer for names that they lack."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import subprocess
import sys
import traceback
import types

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.base.namespaces import INSTEAD, public_modules


def all_loaded(module: types.ModuleType) -> list[types.ModuleType]:
    """A package's public modules, those included that are loaded when they are asked for."""
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, types.ModuleType):
            all_loaded(value)
    return public_modules(module)


MODULES = all_loaded(fg)
BY_NAME = {module.__name__: module for module in MODULES}
OF_PYTHON = ("typing", "collections", "types", "enum", "functools", "dataclasses", "contextlib")


def test_all_public_modules_are_known():
    names = {path.removeprefix("funcgrad").removeprefix(".") for path in BY_NAME}
    assert names >= {
        "", "numpy", "numpy.linalg", "numpy.fft", "scipy", "scipy.linalg", "scipy.special",
        "scipy.signal", "scipy.signal.windows", "scipy.fft", "scipy.ndimage", "scipy.cluster.vq",
        "scipy.spatial.distance", "scipy.spatial.transform", "image", "lax", "lax.linalg", "nn",
        "nn.initializers", "random", "tree", "tree_util", "flatten_util", "ops", "errors",
        "testing", "debug", "ad", "ad_checkpoint", "diagnostics", "checkpoint_policies",
        "custom_batching", "custom_derivatives",
    }  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=BY_NAME)
def test_dir_shows_public_names_only(module):
    assert dir(module) == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in dir(module):
        value = getattr(module, name)
        assert not name.startswith("_")
        assert name != "annotations"
        if isinstance(value, types.ModuleType):
            assert value in MODULES, f"{name} is an inner package"
        elif inspect.isclass(value) or inspect.isfunction(value):
            assert value.__module__.split(".")[0] not in OF_PYTHON, f"{name} is a helper"


@pytest.mark.parametrize("module", MODULES, ids=BY_NAME)
def test_documentation_can_be_rendered(module):
    assert module.__name__ in pydoc.render_doc(module, renderer=pydoc.plaintext)


def answer(path: str) -> str:
    module, _, name = path.rpartition(".")
    with pytest.raises(AttributeError) as caught:
        getattr(BY_NAME[module], name)
    assert caught.value.name == name
    text = str(caught.value)
    assert text.startswith(f"module {module!r} has no attribute {name!r}")
    return text


@pytest.mark.parametrize("path", INSTEAD)
def test_what_is_absent_on_purpose_is_absent_and_says_what_to_use(path):
    assert answer(path).endswith(INSTEAD[path])


def test_names_that_replacements_mention_exist():
    words = {word.strip("(),.:;") for text in INSTEAD.values() for word in text.split()}
    for word in words:
        if word.startswith("funcgrad."):
            path = word.split("(")[0]
            module = importlib.import_module(path.rpartition(".")[0])
            assert hasattr(module, path.rpartition(".")[2]), path


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("funcgrad.numpy.mulitply", "did you mean multiply?"),
        ("funcgrad.numpy.linalg.slove", "did you mean solve?"),
        ("funcgrad.nn.Relu", "did you mean relu?"),
        ("funcgrad.random.nromal", "did you mean normal?"),
        ("funcgrad.vamp", "did you mean vmap?"),
        ("funcgrad.pmap", "map over examples with vmap"),
        ("funcgrad.scan", "it is funcgrad.lax.scan."),
        ("funcgrad.lax.vmap", "it is funcgrad.vmap."),
        ("funcgrad.numpy.softmax", "funcgrad.nn.softmax"),
        ("funcgrad.numpy.test", "numpy.test has no counterpart"),
        ("funcgrad.numpy.linalg.tensorinv_", "has no attribute 'tensorinv_'"),
        ("funcgrad.debug.prnt", "did you mean print?"),
    ],
)
def test_missing_names_say_what_was_meant(path, meant):
    assert meant in answer(path)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("module", MODULES, ids=BY_NAME)
def test_every_slip_of_the_fingers_is_recognised(module):
    for name in [name for name in module.__all__ if len(name) > 4]:
        middle = len(name) // 2
        dropped = name[:middle] + name[middle + 1 :]
        doubled = name[:middle] + name[middle] + name[middle:]
        swapped = name[: middle - 1] + name[middle] + name[middle - 1] + name[middle + 1 :]
        for wrong in {dropped, doubled, swapped}:
            if not any(wrong in other.__all__ for other in MODULES):
                assert name in answer(f"{module.__name__}.{wrong}")


def test_names_in_modules_that_nobody_used_yet_are_found() -> None:
    code = """
import sys, funcgrad
for path in ("nn.leaky_relu", "optim.adamw", "data.read_idx"):
    module, _, name = path.partition(".")
    assert f"funcgrad.{module}" not in sys.modules
    try:
        getattr(funcgrad, name)
    except AttributeError as error:
        assert f"it is funcgrad.{path}." in str(error)
        print("found")
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "found\n" * 3, done.stderr


def test_unknown_names_and_protocols_get_the_plain_message():
    assert answer("funcgrad.numpy.zzzzzz").endswith("'zzzzzz'.")
    assert "mean" not in answer("funcgrad.numpy._sinn")
    assert not hasattr(fg, "__wrapped__")
    assert getattr(fg, "nothing_of_that_kind", 3) == 3


def test_inner_packages_can_be_imported_still():
    assert importlib.import_module("funcgrad.numpy.elementwise").sin is fg.numpy.sin.__wrapped__
    assert fg.core.trace.Tracer is not None


def test_python_adds_no_guess_of_its_own():
    try:
        fg.numpy.mulitply  # noqa: B018
    except AttributeError as error:
        text = "".join(traceback.format_exception(error))
    assert text.count("multiply") == 1


def test_star_imports_give_functions_and_no_helpers():
    namespace: dict[str, object] = {}
    exec("from funcgrad.numpy import *", namespace)
    assert namespace["sin"] is fg.numpy.sin
    assert namespace["float64"] is fg.numpy.float64
    assert namespace["pi"] is np.pi
    assert not {"np", "Any", "sys", "install", "annotations"} & set(namespace)
