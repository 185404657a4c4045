"""JAX's flags and devices under their names."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.observers import _attached
from funcgrad.errors import ArgumentError, DtypePromotionError, UnexpectedTracerError


def in_a_thread(function):
    """Run a function whose settings nobody else shall see."""
    errors = []

    def run():
        try:
            function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def first_nan():
    fg.jit(np.log)(-1.0)


def first_inf():
    fg.jit(lambda x: 1 / x)(0.0)


def promoted():
    fg.jit(np.add)(np.float32(1), np.float64(1))


def leak():
    stash = []
    fg.jit(lambda x: stash.append(x) or x)(1.0)


def python_sees_values():
    fg.jit(lambda x: x if x > 0 else -x)(1.0)


@pytest.mark.parametrize(
    ("name", "value", "use", "error"),
    [
        ("jax_debug_nans", True, first_nan, FloatingPointError),
        ("jax_debug_infs", True, first_inf, FloatingPointError),
        ("jax_numpy_dtype_promotion", "strict", promoted, DtypePromotionError),
        ("jax_check_tracer_leaks", True, leak, UnexpectedTracerError),
    ],
)
def test_flags_of_blocks(name, value, use, error):
    before = fg.config.read(name)

    def check():
        with np.errstate(all="ignore"):
            use()
            fg.config.update(name, value)
            assert getattr(fg.config, name) == value
            with pytest.raises(error):
                use()
            fg.config.update(name, before)
            use()

    in_a_thread(check)
    assert fg.config.read(name) == before


def test_uncompiled():
    def check():
        fg.config.update("jax_disable_jit", True)
        python_sees_values()
        fg.config.update("jax_disable_jit", False)
        with pytest.raises(fg.errors.TracerBoolConversionError):
            python_sees_values()

    in_a_thread(check)


def test_processes_end_quietly():
    """With flags of blocks that were set, in the main thread and in another one."""
    code = (
        "import threading, funcgrad as fg\n"
        "fg.config.update('jax_debug_nans', True)\n"
        "thread = threading.Thread(target=fg.config.update, args=('jax_disable_jit', True))\n"
        "thread.start(); thread.join()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=100
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_flags_that_say_what_is_the_case():
    for name, value in (
        ("jax_enable_x64", True),
        ("jax_platform_name", "cpu"),
        ("jax_platforms", ""),
        ("jax_default_matmul_precision", "highest"),
        ("jax_compilation_cache_dir", "/tmp/x"),
    ):
        fg.config.update(name, value)
        assert fg.config.values[name] == value
    assert fg.config.x64_enabled
    with fg.enable_x64(), fg.enable_x64(True), fg.default_matmul_precision("float32"):
        pass
    with fg.log_compiles(False):
        pass


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("jax_enable_x64", False, r"is True, and cannot be False: .*dtype=np\.float32"),
        ("jax_platform_name", "gpu", r"cannot be 'gpu': there is one platform, 'cpu'"),
        ("jax_numpy_rank_promotion", "warn", r"takes \"raise\" or \"allow\""),
        ("jax_no_such_flag", 1, r"there is no flag 'jax_no_such_flag' here.*jax_debug_nans"),
    ],
)
def test_refused_flags(name, value, text):
    with pytest.raises(ArgumentError, match=text):
        fg.config.update(name, value)


def test_refused_blocks_and_names():
    with pytest.raises(ArgumentError, match="cannot be False"), fg.enable_x64(False):
        pass
    with pytest.raises(AttributeError, match="there is no flag 'jax_nothing'"):
        fg.config.jax_nothing  # noqa: B018
    with pytest.raises(ArgumentError, match="there is no flag"):
        fg.config.read("jax_nothing")


def test_devices():
    (cpu,) = fg.devices()
    assert (cpu.platform, cpu.id, str(cpu)) == ("cpu", 0, "CpuDevice(id=0)")
    assert fg.local_devices(backend="cpu") == [cpu]
    assert fg.device_count() == fg.local_device_count() == fg.process_count() == 1
    assert fg.process_index() == 0
    assert fg.default_backend() == "cpu"
    with fg.default_device(cpu):
        assert fg.device_put(1.0, cpu) == fg.device_put(1.0, "cpu") == 1.0
    with pytest.raises(ArgumentError, match=r"got device='gpu'"), fg.default_device("gpu"):
        pass
    with pytest.raises(ArgumentError, match="one platform, 'cpu', got 'tpu'"):
        fg.devices("tpu")


def test_forgetting():
    f, g = fg.jit(lambda x: x + 1), fg.jit(lambda x: x - 1)
    assert f(1.0) + g(1.0) == 2.0
    fg.clear_caches()
    assert f.cache_info().traces == g.cache_info().traces == 0
    assert f(1.0) == 2.0


def test_named_calls():
    def inner(x):
        return 2 * x

    named = fg.named_call(fg.named_call(inner), name="outer")
    assert named.__name__ == "inner"
    (equation,) = fg.make_jaxpr(named)(1.0).eqns
    assert equation.source.scope == ("outer", "inner")
    assert fg.grad(named)(1.0) == 2.0


def test_names_for_annotations():
    assert isinstance(np.ones(2), fg.typing.Array)
    assert fg.typing.Array is fg.Array
    assert {"ArrayLike", "DTypeLike", "Shape"} <= set(fg.typing.__all__)


def test_flags_that_are_put_back_leave_nothing_behind():
    """Operations are looked at for as long as a flag asks for it."""
    users = len(_attached)
    for _ in range(3):
        fg.config.update("jax_debug_nans", True)
        assert len(_attached) == users + 1
        fg.config.update("jax_debug_nans", False)
        assert len(_attached) == users


@pytest.mark.parametrize("first", ["jax_debug_nans", "jax_debug_infs"])
def test_flags_are_put_back_in_any_order(first):
    users = len(_attached)
    flags = ["jax_debug_nans", "jax_debug_infs", "jax_check_tracer_leaks"]
    for flag in flags:
        fg.config.update(flag, True)
    for flag in [first, *(f for f in flags if f != first)]:
        fg.config.update(flag, False)
    assert len(_attached) == users
    with np.errstate(all="ignore"):
        first_nan(), first_inf(), leak()
