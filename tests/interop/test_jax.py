"""Programs written for JAX run under funcgrad, and say what they miss when they use it."""

from __future__ import annotations

import copy
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.avals import aval_of
from funcgrad.errors import ArgumentError
from funcgrad.interop import running
from funcgrad.interop.jax.arrays import Adopted, Array, adopt
from funcgrad.interop.jax.devices import Mesh, NamedSharding
from funcgrad.interop.jax.modules import NAMES, SOURCES
from funcgrad.interop.jax.widths import enable_x64
from funcgrad.interop.missing import Missing, MissingNameError
from funcgrad.sharding import PartitionSpec
from tests import forks

PROGRAMS = Path(__file__).parents[1] / "programs" / "jax"
QUICK = ["custom_rules", "debugging", "graph_network", "heat_equation", "sieve"]
LONG = sorted({path.stem for path in PROGRAMS.glob("*.py")} - set(QUICK))
INSTALLED = "from funcgrad.interop import jax as neighbour; neighbour.install()\n"
DRIVER = INSTALLED + "import runpy, sys\nfor path in sys.argv[1:]: runpy.run_path(path)"


def run(code, *arguments, x64="1"):
    variables = {"JAX_ENABLE_X64": x64, "XLA_FLAGS": os.environ.get("XLA_FLAGS", "")}
    if code.startswith(INSTALLED):
        code = code.removeprefix(INSTALLED)
        return forks.run(INSTALLED, code, *arguments, variables=variables)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, **variables}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env=environment
    )


def check_programs(names):
    done = run(DRIVER, *(PROGRAMS / f"{name}.py" for name in names))
    assert done.returncode == 0, done.stderr


def test_quick_programs():
    check_programs(QUICK)


@pytest.mark.nightly
@pytest.mark.parametrize("name", LONG)
def test_long_programs(name):
    check_programs([name])


def test_a_script(tmp_path):
    """Its arguments, its folder and its name are those of a script."""
    (tmp_path / "beside.py").write_text("import jax.numpy as jnp\nvalue = jnp.ones(2)\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, beside, jax\n"
        "if __name__ == '__main__':\n"
        "    print(sys.argv[1:], type(beside.value).__name__, jax.__version__)\n"
    )
    command = [sys.executable, "-m", "funcgrad.interop.jax", str(script), "a", "b"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.startswith("['a', 'b'] Array 0."), done.stderr
    module = [*command[:3], "-m", "script", "a"]
    done = subprocess.run(
        module, capture_output=True, text=True, check=False, timeout=300, cwd=tmp_path
    )
    assert done.stdout.startswith("['a'] Array 0."), done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage: python -m funcgrad.interop.jax [--summary] script.py"),
        (["--help"], "       python -m funcgrad.interop.jax [--summary] -m module [arguments]"),
        (["nowhere.py"], "funcgrad.interop.jax: there is no file 'nowhere.py'. Modules are run by"),
    ],
)
def test_a_command_that_names_no_script(arguments, message, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["", *arguments])
    with pytest.raises(SystemExit) as error:
        running.run("funcgrad.interop.jax", pytest.fail, lambda script: "")
    assert message in str(error.value)


SLICES = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import pallas as pl

x = jnp.arange(10.0)
part = pl.dslice(2, 3)
assert (part.start, part.size, part.stride) == (2, 3, 1) and pl.ds(None) == slice(None)
assert not isinstance(part, slice) and isinstance(part, pl.Slice)
np.testing.assert_array_equal(x[part], [2, 3, 4])
np.testing.assert_array_equal(jax.jit(lambda x, i: x[pl.ds(i, 2, 3)])(x, 1), [1, 4])
assert jax.core.is_constant_dim(3) and not jax.core.is_constant_dim("n")

policy = jax.checkpoint_policies.save_and_offload_only_these_names(
    names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"],
    offload_src="device", offload_dst="pinned_host",
)
f = jax.checkpoint(lambda x: jnp.sin(jax.ad_checkpoint.checkpoint_name(x * x, "b")), policy=policy)
np.testing.assert_allclose(jax.grad(f)(2.0), 4 * np.cos(4.0), rtol=1e-6)
"""


def test_words_of_slices_of_dimensions_and_of_policies():
    done = run(INSTALLED + SLICES)
    assert done.returncode == 0, done.stderr


def test_a_profile_of_xla_is_not_written_but_said():
    trace = SOURCES["jax.profiler"].find("trace")
    with pytest.warns(UserWarning, match=r"nothing is written to 'here'.*funcgrad.profile\(f\)"):
        block = trace("here", create_perfetto_link=False)
    with block:
        pass


def test_a_summary_of_a_script_that_stops_at_a_missing_name(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import jax, jax.numpy as jnp\n"
        "from jax.experimental import pallas as pl\n"
        "jax.jit(lambda x: jnp.sin(x))(1.0)\n"
        "pl.pallas_call(print)\n"
    )
    command = [sys.executable, "-m", "funcgrad.interop.jax", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    _, _, summary = done.stderr.partition("MissingNameError: ")
    _, first, *names, missing, times = summary.splitlines()
    assert first.endswith("with 32 bits (jax_enable_x64 is off).")
    assert names == ["  jax, by funcgrad: jit", "  jax.numpy, by funcgrad.numpy: sin"]
    assert missing == "  missing, an error only where called: jax.experimental.pallas.pallas_call"
    assert re.match(r"  [\d.]+ s of processor time since the start; compiled kernels: \d", times)


MISSING = """
from jax import no_such_name_at_all
"""
USED_LATER = """
import jax, jax.numpy as jnp
from jax.experimental import pallas as pl
from jax._src.effects import something
from jax.interpreters import ad, batching
from jax.extend.core import Primitive

def f(x: pl.BlockSpec | None) -> "pl.Ref": ...

operation = Primitive("operation")
operation.def_impl(lambda x: x)
ad.defjvp(operation, None)
batching.primitive_batchers[operation] = None
assert not isinstance(1.0, something.Kind)
assert not hasattr(jnp, "no_such_name")
assert "sin" in dir(jnp) and "sin" in jnp.__all__

class Derived(pl.Slice): ...

bound = lambda: jax.grad(lambda x: jax.extend.core.Primitive("other").bind(x))(1.0)
for use in (lambda: pl.pallas_call(f), bound, lambda: something()):
    try:
        use()
    except NotImplementedError as error:
        print(str(error).split(":")[0].splitlines()[0])
assert operation.bind(1.0) == 1.0
try:
    raise ValueError
except jax.errors.JaxRuntimeError:
    pass
except ValueError:
    print("done")
from jax.numpy import *
assert cos(0.0) == 1.0
"""


def test_missing_names():
    done = run(INSTALLED + MISSING)
    assert "cannot import name 'no_such_name_at_all' from 'jax'" in done.stderr
    done = run(INSTALLED + USED_LATER)
    assert done.stdout.splitlines() == [
        "jax.experimental.pallas.pallas_call is not there",
        "other has no rule for differentiation.",
        "jax._src.effects.something is not there",
        "done",
    ], done.stderr


def test_install_comes_too_late(tmp_path):
    (tmp_path / "jax.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import jax\n{INSTALLED}"
    done = run(code)
    assert "install() comes too late: jax was imported by this process before" in done.stderr
    assert str(tmp_path / "jax.py") in done.stderr
    done = run(INSTALLED + INSTALLED + "import jax, jax.numpy\nneighbour.install()")
    assert done.returncode == 0, done.stderr


def test_stand_ins():
    missing = Missing("jax.lax.something")
    assert repr(missing.deeper["x"]) == "<jax.lax.something.deeper, which is missing>"
    for use in (missing, lambda: list(missing), lambda: missing.deeper()):
        with pytest.raises(MissingNameError, match=r"^jax\.lax\.something.* is not there:"):
            use()
    with pytest.raises(AttributeError):
        missing.__array__  # noqa: B018


@pytest.mark.parametrize("path", sorted(x for x in SOURCES if NAMES.get(x, "*") != "*"))
def test_modules_have_their_names(path):
    """What is found for a module is what JAX has there, beside funcgrad's own."""
    known = set(NAMES[path].split())
    own = {n for n in SOURCES[path].own if not n.startswith("_")}
    others = {
        "jax": {"effects_barrier", "host_count", "P", "set_mesh", "transfer_guard"},
        "jax.experimental": {"disable_x64", "enable_x64"},
        "jax.experimental.hijax": {  # of later versions
            "jvp_from_lin",
            "linearize_from_jvp",
            "vjp_from_jvp",
            "vjp_from_lin",
        },
        "jax.lax": {"cond", "pvary"},
    }.get(path, set())
    old = {"float_", "complex_", "double", "object_", "uint", "int_", "euler_gamma"}
    assert own - known - others - old <= set(dir(fg.errors)) | {
        "breakpoint", "concrete_or_error", "get_aval", "ensure_compile_time_eval", "Primitive",
        "register_translation", "defjvp2", "deflinear", "primitive_linearizations",
        "partial_eval_jaxpr_custom_rules", "custom_partial_eval_rules", "dce_rules",
        "fancy_primitive_batchers", "defvectorized", "axis_primitive_batchers", "lower_fun",
        "primitive_batchers", "primitive_jvps", "primitive_transposes", "load",
    }  # fmt: skip


def test_arrays_of_the_package():
    x = adopt(np.arange(3.0))
    assert type(x) is Array
    assert isinstance(x, np.ndarray)
    assert not isinstance(np.arange(3.0), Array)
    assert type(adopt({"a": (np.float32(1), [np.ones(2)])})["a"][1][0]) is Array
    assert adopt(np.float32(1)).shape == ()
    assert type(x[1]) is Array
    assert type(x.at[1].add(2.0)) is Array
    assert type(x.sum()) is Array
    assert type(np.sin(x)) is Array
    assert x.block_until_ready() is x
    assert x.devices() == set(fg.devices())
    assert pickle.loads(pickle.dumps(x)).tolist() == [0.0, 1.0, 2.0]
    assert fg.jit(lambda i: x[i])(2) == 2.0
    assert fg.jit(lambda i: x[:, None][i, 0])(1) == 1.0
    assert fg.grad(lambda v: isinstance(v, Array) * v**2)(3.0) == 6.0
    y = copied = x
    for operation in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"):
        y = getattr(y, f"__{operation}__")(2.0)
    assert copied.tolist() == x.tolist() == [0.0, 1.0, 2.0]
    bits = adopt(np.array([6, 3]))
    for operation in ("iand", "ior", "ixor"):
        getattr(bits, f"__{operation}__")(1)
    assert bits.tolist() == [6, 3]


def test_adopted_functions():
    class Model:
        scale = 2.0

        @Adopted
        def apply(self, x):
            """Scaled."""
            return np.asarray(self.scale * x)

    assert type(Model().apply(np.ones(2))) is Array
    assert Model.apply.__doc__ == "Scaled."
    jitted = adopt(fg.jit(lambda x: x + 1))
    assert type(jitted(np.ones(2))) is Array
    assert jitted.cache_info().traces == 1
    assert jitted.lower(1.0).compile()(1.0) == 2.0
    assert copy.copy(jitted)(1.0) == 2.0
    mean = Adopted(fg.numpy.mean, folds_axes=True)
    assert mean(np.ones((2, 3)), [0, 1]) == mean(np.ones((2, 3)), axis=range(2)) == 1.0


def test_comparisons_are_with_arrays_and_numbers():
    x = adopt(np.arange(3.0))
    for other in (None, "x", object()):
        assert (x == other) is False
        assert (x != other) is True
    assert None not in [x, x]
    for found in (x == 1.0, x == 1.0, x == np.array([0.0, 1.0, 3.0]), x < 2):
        assert type(found) is Array
    np.testing.assert_array_equal(x >= np.ones(3), [False, True, True])
    with pytest.raises(TypeError, match="not supported between"):
        _ = x < None


def test_literals_of_programs_keep_their_dtypes():
    """Arrays of programs without 64 bits give narrow elements, but constants stay as they are."""
    number = np.array(3).view(Array)
    assert number[()].dtype == np.int32
    (equation,) = fg.make_jaxpr(lambda x: x + number)(np.int64(1)).eqns
    assert [aval_of(v).dtype for v in equation.inputs] == [np.dtype(np.int64)] * 2


FOLDS = ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var")


@pytest.fixture
def x64():
    with enable_x64():
        yield


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", FOLDS)
def test_folds_of_arrays(name):
    """Keywords that are None are not given, in methods as in functions."""
    plain = np.array([[1.0, -2.0, 0.0], [3.0, 5.0, -1.0]])
    x, mask = adopt(plain), np.array([True, False, True])
    fold = getattr(np, name)
    for axis in (None, 0, 1, (0, 1)):
        found = getattr(x, name)(axis, where=None, keepdims=True)
        assert type(found) is Array
        np.testing.assert_allclose(found, fold(plain, axis, keepdims=True), 1e-15)
        np.testing.assert_allclose(fold(x, axis), fold(plain, axis), 1e-15)
    np.testing.assert_allclose(getattr(x, name)([0, 1]), fold(plain), 1e-15)
    initial = {"initial": 0.0} if name in ("max", "min") else {}
    expected = fold(plain, 1, where=mask, **initial)
    chosen = getattr(x, name)(axis=1, where=mask, **initial)
    np.testing.assert_allclose(chosen, expected, 1e-15)
    traced = fg.jit(lambda m: getattr(x, name)(1, where=m, **initial))(mask)
    np.testing.assert_allclose(traced, expected, 1e-15)


def test_words_about_sums():
    x = adopt(np.array([100, 100, 100], np.int8))
    assert x.sum(promote_integers=False) == 44
    assert x.sum(initial=None) == 300
    assert round(adopt(np.float64(2.345)), 1) == 2.3
    kinds = SOURCES["jax.numpy"].own
    assert kinds["iscomplexobj"](kinds["complex64"])
    assert kinds["isrealobj"](kinds["float32"])
    assert kinds["iscomplexobj"](adopt(np.ones(1, complex)))


ALIASES = """
import jax, jax.numpy as jnp
def f(x):
    a = jnp.zeros(3)
    b = a
    b += x
    c = jnp.ones(2) * 1.0
    d = c
    d *= 2.0
    assert all(isinstance(v, jax.Array) for v in (a, b, c, d))
    return a, b, c, d
expected = [[0.0] * 3, [1.0] * 3, [1.0] * 2, [2.0] * 2]
wrappers = {
    "eager": lambda f: f,
    "jit": jax.jit,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,))[0],
    "vmap": lambda f: lambda x: [v[0] for v in jax.vmap(f)(jnp.ones(1) * x)],
    "scan": lambda f: lambda x: [v[0] for v in jax.lax.scan(lambda c, _: (c, f(c)), x, None, 1)[1]],
}
for name, wrap in wrappers.items():
    found = [v.tolist() for v in wrap(f)(1.0)]
    assert found == expected, (name, found)
leaf = jnp.ones(3)
drawn = jax.random.normal(jax.random.key(0), (3,), out_sharding=leaf.sharding)
from jax.test_util import check_grads
check_grads(jnp.sin, (leaf,), order=1)
"""


METHODS = """
import numpy as np
plain = np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
table = jnp.asarray(plain)
methods = [
    (lambda x: x.sort(), np.sort(plain)),
    (lambda x: x.sort(axis=0), np.sort(plain, 0)),
    (lambda x: x.sort(axis=None, descending=True), np.sort(plain, None)[::-1]),
    (lambda x: x.copy().sort(), np.sort(plain)),
    (lambda x: x.argsort(descending=True, stable=True), np.argsort(-plain)),
    (lambda x: x.nonzero(size=6, fill_value=7)[1], [0, 1, 2, 1, 2, 7]),
    (lambda x: x.repeat(2, total_repeat_length=3), [3.0, 3.0, 1.0]),
    (lambda x: x.take(jnp.array([0, 9]), mode="fill", fill_value=-5.0), [3.0, -5.0]),
    (lambda x: x.compress(jnp.array([True, False]), 0, size=2, fill_value=7.0)[1], [7.0] * 3),
    (lambda x: x.compress(jnp.array([False, True]), axis=0), plain[1:]),
    (lambda x: x.dot(x.T, precision="highest"), plain @ plain.T),
    (lambda x: x.ptp(axis=0, keepdims=True), np.ptp(plain, 0, keepdims=True)),
    (lambda x: x.var(correction=1), plain.var(ddof=1)),
    (lambda x: table.take((x[0, 1] * 2).astype(int)), 2.0),
    (lambda x: table[0].dot(x[1]), plain[0] @ plain[1]),
    (lambda x: x.reshape(-1, out_sharding=None), plain.ravel()),
    (lambda x: x.astype(int).byteswap(), plain.astype(int).byteswap()),
]
for number, (method, expected) in enumerate(methods):
    for way in (method, jax.jit(method)):
        if number == 9 and way is not method:
            continue  # as many as are chosen
        x = jnp.asarray(plain)
        found = way(x)
        assert isinstance(found, jax.Array), number
        np.testing.assert_allclose(found, expected, 1e-15, err_msg=str(number))
        np.testing.assert_array_equal(x, plain)
        assert not x.weak_type
for function in (np.sort, np.median, np.unique, np.partition):
    given = (plain, 1) if function is np.partition else (plain,)
    np.testing.assert_array_equal(function(table, *given[1:]), function(*given))
assert jnp.concatenate([table, np.stack([table[0]])]).shape == (3, 3)
np.testing.assert_array_equal(jax.jit(lambda x: np.vstack([table, x]))(plain)[2:], plain)
assert table.to_device(jax.devices()[0]) is table
"""


def test_arrays_of_programs_do_not_change():
    done = run(INSTALLED + ALIASES + METHODS)
    assert done.returncode == 0, done.stderr


def test_scalars_of_the_package():
    kind = SOURCES["jax.numpy"].find("isscalar")
    for x in (1, 2.0, np.float32(1), np.array(1.0), adopt(np.float32(1))):
        assert kind(x)
    for x in (np.ones(1), [1.0], None):
        assert not kind(x)
    assert fg.jit(lambda x: kind(x) * x)(2.0) == 2.0


def test_compilation_takes_words_about_devices():
    jit = SOURCES["jax"].find("jit")
    place = NamedSharding(Mesh(fg.devices(), "x"), PartitionSpec("x"))
    double = jit(lambda x: 2 * x, in_shardings=place, out_shardings=place)
    assert isinstance(double(np.ones(2)), Array)
    raised = jit(static_argnums=1, backend="cpu")(lambda x, n: x**n)
    assert raised(2.0, 3) == 8.0
    with pytest.raises(TypeError, match="static_args"):
        jit(lambda x: x, static_args=0)


def test_one_device():
    mesh = Mesh(fg.devices(), "x")
    assert mesh.shape == {"x": 1}
    placed = fg.device_put(1.0, NamedSharding(mesh, PartitionSpec("x")))
    assert placed == 1.0
    with pytest.raises(ArgumentError, match="there is one, the CPU"):
        Mesh(fg.devices() * 2, ("x",))


SEVERAL_DEVICES = """
import jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec
assert jax.device_count() == jax.local_device_count() == 3
jax.config.update("jax_num_cpu_devices", 2)
first, second = jax.devices("cpu")
assert (second.id, repr(second)) == (1, "CpuDevice(id=1)") and jax.local_devices()[0] is first
mesh = jax.make_mesh((2,), ("x",))
assert mesh == Mesh(jax.devices(), "x") and mesh.shape == {"x": 2} and mesh.size == 2
place = NamedSharding(mesh, PartitionSpec("x"))
assert place == NamedSharding(mesh, PartitionSpec("x")) != NamedSharding(mesh, PartitionSpec(None))
x = jnp.arange(4)
halves, moved = jax.device_put(x, place), x.to_device(second)
assert halves.sharding == place and halves.committed and halves.devices() == {first, second}
assert not halves.is_fully_replicated and not x.committed and x.devices() == {first}
assert moved.devices() == {second} and (moved + halves).tolist() == [0, 2, 4, 6]
traces = []

def scaled(row, n, name):
    traces.append(name)
    return row * n + jax.lax.psum(row, name)

over = jax.pmap(scaled, "i", in_axes=(0, None, None), static_broadcasted_argnums=2)
for _ in range(2):
    assert over(jnp.arange(2.0), 3.0, "i").tolist() == [1.0, 4.0]
assert traces == ["i"]
assert jax.pmap(lambda: 1, axis_size=2)().tolist() == [1, 1]
"""


def test_as_many_devices_as_a_program_asks_for(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=3")
    done = run(INSTALLED + SEVERAL_DEVICES)
    assert done.returncode == 0, done.stderr


OPERATIONS = """
import jax, jax.numpy as jnp
from jax.experimental import hijax

class Product(hijax.VJPHiPrimitive):
    def __init__(self, x, y, factor):
        self.in_avals, self.out_aval, self.params = (x, y), {"out": x}, {"factor": factor}
        super().__init__()

    def expand(self, x, y):
        return {"out": self.factor * x * y}

    def vjp_fwd(self, nonzeros, x, y):
        return self(x, y), (x if nonzeros[1] else None, y if nonzeros[0] else None)

    def vjp_bwd(self, kept, ct, x_bar, y_bar):
        x, y = kept
        if y is not None:
            x_bar.accum(10.0 * self.factor * ct["out"] * y)
        y_bar.accum(hijax.Zero(jax.typeof(ct["out"])) if x is None else ct["out"] * x)

    def jvp(self, primals, tangents):
        (x, y), (s, t) = primals, tangents
        assert isinstance(t, hijax.Zero)
        return self(x, y), {"out": 100.0 * hijax.instantiate_zeros(s) * y}

class Mapped(Product):
    def batch(self, axis, args, dims):
        assert axis.size == 4 and dims == (0, None)
        return {"out": (args[0] * args[1]).T}, {"out": 1}

class Sine(hijax.VJPHiPrimitive):
    def __init__(self, x):
        self.in_avals, self.out_aval, self.params = (x,), x, {}
        super().__init__()

    expand = staticmethod(jnp.sin)
    jvp = hijax.jvp_from_lin
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin
    lin = lambda self, nonzeros, x: (self(x), 2.0 * jnp.cos(x))
    linearized = lambda self, slope, t: slope * t

def product(x, y, kind=Product):
    return kind(jax.typeof(x), jax.typeof(y), 3.0)(x, y)["out"]

def sine(x):
    return Sine(jax.typeof(x))(x)

for wrap in (lambda f: f, jax.jit):
    assert wrap(product)(2.0, 5.0) == 30.0
    assert wrap(jax.grad(product))(2.0, 5.0) == 150.0
    assert wrap(jax.grad(product, 1))(2.0, 5.0) == 2.0
    assert wrap(lambda x: jax.jvp(lambda x: product(x, 5.0), (x,), (1.0,)))(2.0)[1] == 500.0
    assert wrap(jax.grad(sine))(0.0) == wrap(jax.jacfwd(sine))(0.0) == 2.0
    assert wrap(jax.vmap(jax.grad(product), (0, None)))(jnp.ones(4), 5.0).tolist() == [150.0] * 4
lanes = jax.vmap(lambda x, y: product(x, y, Mapped), (0, None))(jnp.ones((4, 2)), jnp.ones(2))
assert lanes.shape == (4, 2)
assert Product(*[jax.typeof(1.0)] * 2, 3.0) == Product(*[jax.typeof(1.0)] * 2, 3.0) != Sine(1.0)
try:
    Sine(jax.typeof(jnp.ones(3)))(1.0)
except ValueError as error:
    assert "Sine was made for arguments of other types." in str(error), error
else:
    raise AssertionError
"""


def test_operations_that_are_classes():
    done = run(INSTALLED + OPERATIONS, x64="0")
    assert done.returncode == 0, done.stderr


MODULES_BEFORE_FUNCTIONS = """
import jax
from jax._src.util import safe_map, safe_zip

assert safe_map(max, [1, 5], [3, 4]) == [3, 5] and safe_zip("ab", [1, 2]) == [("a", 1), ("b", 2)]
try:
    jax.export.export(jax.jit(lambda x: x))
except NotImplementedError as error:
    assert "jax.export.export is not there" in str(error), error
"""


def test_modules_are_found_before_functions_of_their_name():
    done = run(INSTALLED + MODULES_BEFORE_FUNCTIONS)
    assert done.returncode == 0, done.stderr


SET_BY_THE_PROGRAM = """
import os
os.environ.update(JAX_ENABLE_X64="1", JAX_THREEFRY_PARTITIONABLE="0")
import jax
assert jax.config.jax_threefry_partitionable is False
os.environ["XLA_FLAGS"] = "--xla_other=1 --xla_force_host_platform_device_count=4"
assert jax.device_count() == 4 and jax.numpy.ones(1).dtype == "float64"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=5"
assert len(jax.devices()) == 4
"""


def test_the_environment_is_read_when_it_is_needed():
    """As of JAX, also what the program itself has set."""
    done = run(INSTALLED + SET_BY_THE_PROGRAM)
    assert done.returncode == 0, done.stderr


IN_PARTS = """
import jax, jax.numpy as jnp, numpy as np
from functools import partial
from jax.experimental.shard_map import shard_map
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"))
a, b = jnp.arange(32.0).reshape(8, 4), jnp.ones((4, 3))

@jax.jit
@partial(jax.shard_map, mesh=mesh, in_specs=(P("x", "y"), P("y")), out_specs=P("x"))
def product(a, b):
    assert isinstance(a, jax.Array) and a.shape == (2, 2) and a.dtype == b.dtype
    return jax.lax.psum(a @ b, "y")

assert jnp.allclose(product(a, b), a @ b) and isinstance(product(a, b), jax.Array)
of_b = jax.grad(lambda b: jnp.sum(product(a, b) ** 2))(b)
assert jnp.allclose(of_b, jax.grad(lambda b: jnp.sum((a @ b) ** 2))(b), rtol=1e-4)
mean = lambda a: jax.lax.pmean(a, "x")
old = shard_map(mean, mesh, in_specs=P("x"), out_specs=P(), check_rep=True)
assert jnp.allclose(old(a), a.reshape(4, 2, 4).mean(0))
with jax.set_mesh(mesh):
    assert jax.shard_map(lambda a: 2 * a, in_specs=P("x"), out_specs=P("x"))(a).shape == (8, 4)

# Results say how they are divided, also those of `jit`, and have parts.
place = jax.sharding.NamedSharding(mesh, P("x", "y"))
for wrap in (lambda f: f, jax.jit):
    f = wrap(jax.shard_map(lambda a: 2 * a, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y")))
    for made in (f(a), f(a)):
        assert made.sharding == place and not made.is_fully_replicated
        for k, shard in enumerate(made.addressable_shards):
            i, j = divmod(k, 2)
            assert np.array_equal(shard.data, 2 * a[2 * i : 2 * i + 2, 2 * j : 2 * j + 2])
            assert np.array_equal(made[shard.index], shard.data) and shard.device.id == k
            assert np.array_equal(made.addressable_data(k), shard.data)
rows = jax.device_put(a, jax.sharding.NamedSharding(mesh, P("x")))
assert [s.replica_id for s in rows.addressable_shards] == [0, 1] * 4
assert a.addressable_shards[0].data.shape == (8, 4)
halves = jax.jit(lambda a: (a, a + 1), out_shardings=(place, None))(a)
assert halves[0].sharding == place != halves[1].sharding
with jax.set_mesh(mesh):
    assert jax.device_put(a, P("x", "y")).sharding == place
    totals = jax.smap(lambda a: jax.lax.psum(a, "x"), in_axes=0, out_axes=None, axis_name="x")
    assert np.array_equal(totals(a), a.reshape(4, 2, 4).sum(0))
    around = jax.sharding.get_abstract_mesh()
    assert around.auto_axes == ("x", "y") == around.axis_names

def seen(a, b):
    assert jax.sharding.get_abstract_mesh().manual_axes == ("x", "y")
    assert jax.typeof(a).vma == {"x"} and jax.typeof(a + b).vma == {"x", "y"}
    assert jax.typeof(jax.lax.psum(a, "x")).vma == set() == jax.typeof(1.0).vma
    kinds = jax.typeof(a).mat
    assert kinds.varying == {"x"} and kinds.invarying(mesh) == set() == kinds.unreduced
    assert kinds.invarying(jax.sharding.get_abstract_mesh()) == {"y"}
    return jax.pure_callback(lambda a: np.sin(a), jax.ShapeDtypeStruct.like(a), a)

sines = jax.shard_map(seen, mesh=mesh, in_specs=(P("x"), P("y")), out_specs=P("x"))(a, a[:4])
assert np.allclose(sines, np.sin(a))
as_divided = jax.shard_map(lambda a, n: a * n, mesh=mesh, out_specs=P("x"))
twice = as_divided(rows, 2.0)
assert twice.sharding == rows.sharding and jnp.allclose(twice, 2 * a)
stacked = jax.vmap(product, in_axes=(0, None), spmd_axis_name="data")(jnp.stack([a, 2 * a]), b)
assert jnp.allclose(stacked[1], 2 * a @ b)
for wrong, error in (
    (lambda: jax.device_put(a, P("x")), "there is none"),
    (lambda: jax.device_put(a[:3], place), "cannot be divided"),
    (lambda: jax.jit(as_divided)(rows, 2.0), "Give shard_map in_specs"),
    (lambda: jax.shard_map(lambda a: jax.lax.with_sharding_constraint(a, place), mesh=mesh,
                           in_specs=P("x"), out_specs=P("x"))(a), "shard_map maps here"),
):
    try:
        wrong()
    except ValueError as found:
        assert error in str(found)
    else:
        raise AssertionError(error)
"""


def test_arrays_in_parts(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
    done = run(INSTALLED + IN_PARTS)
    assert done.returncode == 0, done.stderr


REFERENCES = """
import jax, jax.numpy as jnp

count = jax.new_ref(jnp.zeros(3))
count[0] = 1.0
assert isinstance(count, jax.Ref) and isinstance(count[...], jax.Array)
assert count[...].at[0].set(3.0)[0] == 3.0
assert all(jax.new_ref(x).dtype == jnp.asarray(x).dtype for x in (0.0, 1, 1j))

@jax.jit
def step(x, ref):
    ref[2] += x
    jax.lax.fori_loop(0, 3, lambda i, _: count.__setitem__(i, count[i] + 1.0), None)
    return ref[...].at[0].set(5.0)

sums = jax.ref.new_ref(jnp.ones(3))
assert step(2.0, sums).tolist() == [5.0, 1.0, 3.0]
assert jax.ref.swap(count, 1, 4.0) == 1.0 and jax.ref.get(count, 0) == 2.0
jax.ref.addupdate(count, slice(0, 2), 1.0)
empty = jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.float32))
assert isinstance(empty[0], jax.Array) and empty.dtype == jnp.float32
print(count, jax.freeze(sums).sum(), jax.grad(lambda x: jax.new_ref(x)[...] ** 2)(3.0))
"""


def test_references():
    done = run(INSTALLED + REFERENCES)
    assert done.stdout == "Ref([3., 5., 1.]) 5.0 6.0\n", done.stderr


def test_checks_and_test_util_are_found():
    for path, names in {
        "jax.experimental.checkify": ("checkify", "check", "JaxRuntimeError", "all_checks"),
        "jax.test_util": ("check_grads", "check_jvp", "check_vjp"),
        "jax.dtypes": ("prng_key", "canonicalize_dtype", "float0", "issubdtype"),
    }.items():
        for name in names:
            assert SOURCES[path].find(name) is not None


BRANCHES = """
import importlib.util
from funcgrad.interop.jax import install, uninstall

taken = []
for line in (
    "import jax.experimental.anything",
    "import jax.nothing",
    "import jax.lax.nothing.deeper",
    "import jax._src.no_such_module",
    "import jaxlib.no_such_module",
    "from jax.experimental import anything",
    "from jax.experimental.pallas import no_such_name",
    "from jax._src import no_such_name",
):
    try:
        exec(line)
    except ImportError as error:
        taken.append(type(error).__name__)
        if line == "import jax.experimental.anything":
            print(error)
print(*taken)
print(importlib.util.find_spec("jax.experimental.anything"))
for path in (
    "jax.experimental.pallas.tpu", "jax.experimental.sparse", "jax._src.lax.control_flow.loops",
    "jaxlib.xla_client", "jax.scipy.stats.norm", "jax.interpreters.mlir", "jax.extend.backend",
):
    assert importlib.util.find_spec(path) is not None
    assert importlib.import_module(path).__name__ == path
"""


def test_modules_that_jax_has_not_are_import_errors():
    done = run(INSTALLED + BRANCHES)
    text, taken, spec = done.stdout.splitlines()
    assert text == (
        "No module named 'jax.experimental.anything': this program runs on funcgrad, which answers "
        "to the name jax as JAX 0.10.0 does. docs/interop_jax.md lists what there is."
    ), done.stderr
    assert taken.split() == 5 * ["ModuleNotFoundError"] + 3 * ["ImportError"]
    assert spec == "None"


PRIVATE = """
from jax._src.lax.control_flow import scan, while_loop
from jax._src.numpy.lax_numpy import arange
from jax._src.random import normal
import jax

total = lambda carried, x: (carried + x, carried)
print(float(jax.jit(lambda x: scan(total, 0.0, x)[0])(arange(4.0))))
key = jax.random.key(0)
print((normal(key, (3,)) == jax.random.normal(key, (3,))).all())
"""


def test_private_modules_tell_public_names():
    done = run(INSTALLED + PRIVATE)
    assert done.stdout.split() == ["6.0", "True"], done.stderr


BESIDE = """
import sys
import numpy as np
import funcgrad as fg
from funcgrad.core.trace import Tracer
from funcgrad.interop.jax import install, uninstall

def sorted_in_jax(x):
    y = x.copy()
    y += 1
    return (x.sort() * y * np.arange(3.0)).sum()

def changed_in_numpy(x):
    y = x.copy()
    y[0] = 0.0
    y.sort()
    return (y * x).sum()

def jvp(f):
    return lambda x: fg.jvp(f, (x,), (x,))

def check_numpy():
    for transform in (fg.grad, lambda f: fg.jit(fg.grad(f)), jvp):
        transform(changed_in_numpy)(np.array([3.0, 1.0, 2.0]))
        try:
            transform(lambda x: x.sort())(np.ones(3))
        except ValueError as error:
            assert "`x.sort(...)` would change a traced f64[3] inside" in str(error)
            assert "but it is an argument" in str(error)
        else:
            raise AssertionError

before = dict(vars(Tracer))
install()
install()
check_numpy()
import jax, jax.numpy as jnp
x = np.array([3.0, 1.0, 2.0])
expected = jax.grad(sorted_in_jax)(x)
check_numpy()
assert (jax.jit(jax.grad(sorted_in_jax))(x) == expected).all()
assert (jax.jit(sorted_in_jax).lower(x).compile()(x) == sorted_in_jax(jnp.array(x))).all()
assert jax.vmap(sorted_in_jax)(np.stack([x, x])).shape == (2,)
assert jax.lax.scan(lambda c, x: (c, x.sort()), 0.0, np.stack([x, x]))[1][0, 0] == 1.0
assert jax.lax.cond(True, lambda x: x.sort(), lambda x: x, x)[0] == 1.0
from jax.experimental.checkify import checkify
assert checkify(lambda x: x.sort())(x)[1][0] == 1.0
# The same function, traced by the rules of either.
kinds = []
record = lambda x: (kinds.append(type(x.copy()).__name__), x * 1)[1]
jax.jit(record)(x)
fg.jit(record)(x)
assert kinds[0] != "WritableArray" and kinds[1] == "WritableArray", kinds
uninstall()
uninstall()
assert before == dict(vars(Tracer))
assert not [x for x in sys.meta_path if type(x).__module__.startswith("funcgrad.interop")]
assert not [name for name in sys.modules if name.split(".")[0] in ("jax", "jaxlib")]
check_numpy()
try:
    import jax
except ImportError:
    pass
else:
    assert "funcgrad" not in jax.__spec__.origin
    for name in [name for name in sys.modules if name.split(".")[0] in ("jax", "jaxlib")]:
        del sys.modules[name]
install()
import jax
assert jax.__spec__.origin == "funcgrad.interop.jax"
assert (jax.grad(sorted_in_jax)(x) == expected).all()
"""


def test_traced_values_follow_the_rules_of_who_traces_and_there_is_a_way_back():
    done = run(BESIDE)
    assert done.returncode == 0, done.stderr


BEYOND = """
import numpy as np
import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.errors import OutOfBoundsError
from funcgrad.interop.jax import install
install()
import jax, jax.numpy as jnp

def read(x, i):
    return x[i]

def along(x, i):
    return fnp.take_along_axis(x, i, 0)

x, i = np.arange(3.0), np.array([1, 7, -9])
for f in (read, along):
    assert jax.jit(f)(x, i).tolist() == [1.0, 2.0, 0.0]
    try:
        fg.jit(f)(x, i)
    except OutOfBoundsError:
        pass
    else:
        raise AssertionError
    assert jax.jit(f)(x, i).tolist() == [1.0, 2.0, 0.0]
assert jax.vmap(read, (None, 0))(x, i).tolist() == [1.0, 2.0, 0.0]
assert jax.jit(jax.grad(lambda x, i: read(x, i).sum()))(x, i).tolist() == [1.0, 1.0, 1.0]
assert jax.lax.map(lambda k: jnp.asarray(x)[k], i).tolist() == [1.0, 2.0, 0.0]

y = jnp.asarray(x)
for way in (lambda f: f, jax.jit):
    assert way(lambda y: jnp.stack([y[5], y[-9], y[2]]))(y).tolist() == [2.0, 0.0, 2.0]
    assert way(lambda y: y[jnp.array([7, 1, -9])])(y).tolist() == [2.0, 1.0, 0.0]
    assert way(lambda y: y.at[5].set(9.0).at[-9].add(9.0))(y).tolist() == [0.0, 1.0, 2.0]
    assert way(lambda y: y.at[jnp.array([7, 1])].set(9.0))(y).tolist() == [0.0, 9.0, 2.0]
    assert way(jax.grad(lambda y: y[5] + y[1]))(y).tolist() == [0.0, 1.0, 1.0]
for wrong in ((0, 0), 1.5, "a"):
    try:
        y[wrong]
    except IndexError:
        pass
    else:
        raise AssertionError(wrong)
assert list(y) == [0.0, 1.0, 2.0] and [row.shape for row in jnp.ones((2, 4))] == [(4,), (4,)]
try:
    iter(jnp.array(1.0))
except TypeError as error:
    assert "0-d" in str(error)
else:
    raise AssertionError
try:
    fg.lax.map(lambda k: fnp.asarray(x)[k], i)
except OutOfBoundsError:
    pass
else:
    raise AssertionError
"""


def test_indices_out_of_bounds_follow_the_rules_of_who_traces():
    done = run(BEYOND)
    assert done.returncode == 0, done.stderr


WIDTHS = """
import numpy as np
import funcgrad as fg, jax, jax.numpy as jnp

SHORT = {np.dtype(t) for t in ("bool", "int32", "uint32", "float32", "complex64")}
x, i, z = jnp.arange(1.0, 4.0), jnp.arange(3), jnp.ones(3, complex)
key = jax.random.key(0)

def widened(x, i, z, s):
    half, wide = np.float64(0.5), np.arange(3.0)
    return [
        i / i, i * x, i * 1.5, i / 2, i**2, 2.0**i, i + np.uint32(1), x * half, x @ wide, wide @ x,
        z * i, z * wide, i.sum(), i.mean(), i.cumsum(), x.argmax(), x.std(), (i > 1).sum(),
        i.astype(float), x.astype("complex128"), jnp.where(i > 0, x, 0.0), s, s * 2, s * i, s + x,
        jnp.sum(i), jnp.argsort(x), jnp.linspace(0, 1, 3), jnp.zeros(2) + x[0], jnp.asarray(s),
        jnp.stack([x, wide]), jnp.searchsorted(x, wide), jnp.float64(1), jnp.full(2, 7),
        jnp.nonzero(i, size=2)[0], jnp.fft.fft(x), jax.nn.one_hot(i, 3), jax.lax.iota(int, 3),
        jax.random.normal(key), jax.random.bits(key), jax.random.randint(key, (2,), 0, 9),
        jax.random.choice(key, i), jax.nn.initializers.zeros(key, (2,)),
        jax.lax.fori_loop(0, 3, lambda k, c: c + k * x, x), jax.lax.map(lambda k: k / 2, i),
        jax.lax.scan(lambda c, v: (c * v, c + v), 1.0, wide)[0],
        jax.lax.while_loop(lambda v: v < 9.0, lambda v: 2 * v, 1.0),
        jax.lax.cond(True, lambda v: v * half, lambda v: v, x),
    ]

def check(found):
    wrong = [(n, a.dtype) for n, a in enumerate(found) if a.dtype not in SHORT]
    assert not wrong, wrong

eager = widened(x, i, z, jnp.float32(2))
for found in (eager, jax.jit(widened)(x, i, z, 2.0),
              jax.jit(widened)(np.arange(1.0, 4.0), np.arange(3), np.ones(3, complex), 2.0)):
    check(found)
    for a, b in zip(found, eager, strict=True):
        np.testing.assert_allclose(a, b, 2e-6)
check(jax.vmap(widened, (None, None, None, 0))(x, i, z, jnp.ones(2)))
total = lambda x: sum(jnp.sum(abs(a)) for a in widened(x, i, z, 2.0))
slopes = [jax.grad(total)(x), jax.jit(jax.grad(total))(x), jax.jacfwd(total)(np.arange(1.0, 4.0)),
          jax.jvp(total, (x,), (x,))[1], jax.vjp(total, x)[1](np.float64(1))[0]]
check(slopes)
np.testing.assert_allclose(slopes[0], slopes[1], 1e-5)
check([jax.grad(lambda v: v**2)(3.0), jax.eval_shape(lambda v: v / 2, np.arange(3))])
assert jax.jit(lambda v: jnp.finfo(v.dtype).eps)(1.0) == np.finfo("f").eps
assert jnp.result_type(float) == jax.dtypes.canonicalize_dtype("f8") == np.float32
compiled = jax.jit(lambda v: 2 * v).lower(np.ones(2)).compile()
assert compiled(np.ones(2)).dtype == np.float32
# Draws are those of 32 bits, keys are whole.
assert jax.random.normal(key, (3,)).tolist() == jax.random.normal(key, (3,), np.float32).tolist()
assert jax.random.key_data(key).dtype == np.uint32
split = jax.jit(jax.random.split)(key)
assert (jax.random.key_data(split) == jax.random.key_data(jax.random.split(key))).all()

# Others see nothing of it, and the switch can be turned.
assert fg.jit(lambda v: v / 2)(np.arange(3)).dtype == np.float64
assert fg.random.normal(fg.random.key(0)).dtype == np.float64
with jax.experimental.enable_x64():
    assert jnp.ones(2).dtype == jax.jit(lambda v: v)(np.ones(2)).dtype == np.float64
    assert jax.config.jax_enable_x64 and jax.config.x64_enabled
assert not jax.config.jax_enable_x64 and jnp.ones(2).dtype == np.float32
jax.config.update("jax_enable_x64", True)
with jax.enable_x64(False):
    assert jnp.ones(2).dtype == np.float32
assert jnp.ones(2).dtype == jax.jit(lambda v: v * 1.0)(1).dtype == np.float64
"""


def test_without_x64_no_array_of_a_program_has_more_than_32_bits():
    done = run(INSTALLED + WIDTHS, x64="0")
    assert done.returncode == 0, done.stderr


BORROWED = """
import numpy as np, jax, jax.numpy as jnp
from jax._src.public_test_util import check_close
from jax.test_util import check_grads

x = jnp.arange(3.0)
check_close({"a": [x]}, {"a": [x * (1 + 5e-7)]})
check_close(x, x + 0.1, atol={np.dtype("f4"): 0.2}, rtol=0)
for other in (x + 1e-3, x[:2], {"a": x}):
    try:
        check_close(x, other)
    except AssertionError:
        pass
    else:
        raise SystemError(other)
check_grads(jnp.sin, (0.5,), 2)  # in the precision of the arrays that it makes
check_grads(jnp.sin, args=(0.5,), order=2)
assert jax.jit(lambda v: jnp.finfo(v).bits)(x) == 32 == jnp.iinfo(jnp.int32).bits
assert jnp.finfo(np.float32).bits == jnp.finfo("float32").bits == jnp.iinfo(np.int32).bits == 32
assert jax.lax.dtype(np.float64) == jax.lax.dtype(1.0) == np.float32
assert jax.lax.clz(1) == 31
assert jnp.promote_types(np.float32, np.int32) == np.float32
check_grads(jnp.sin, (x,), 2, atol={np.float32: 1e-2, np.float64: 1e-9}, rtol=None)
raveled, unravel = jax.flatten_util.ravel_pytree([jnp.ones(2), jnp.array(3, jnp.int32)])
assert raveled.dtype == np.float32 and unravel(raveled)[1].dtype == np.int32


def last_is_mapped(carry):
    return jax.lax.scan(lambda c, _: ((c[1], c[2], 0.0), None), (0.0, 1.0, carry), None, 2)[0]


shifted = jax.vmap(last_is_mapped)(jnp.array([3.0, 4.0]))
assert [v.tolist() for v in shifted] == [[3.0, 4.0], [0.0, 0.0], [0.0, 0.0]]
numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
applied = jax.lax.scatter_apply(
    jnp.ones(3), np.array([[0], [2], [2]]), lambda v: 2 * v, numbers, update_shape=(3,)
)
assert applied.tolist() == [2.0, 1.0, 4.0]
assert jax.lax.top_k(x, 1, is_stable=True)[1].dtype == np.int32

third = jnp.ones(2) / 3
assert str(third) == "[0.33333334 0.33333334]"
assert repr(third) == "Array([0.33333334, 0.33333334], dtype=float32)"
assert repr(jnp.zeros((0, 3), int)) == "Array([], shape=(0, 3), dtype=int32)"
assert repr(jnp.asarray(2)) == "Array(2, dtype=int32, weak_type=True)"
assert repr(jnp.arange(30) / 7).endswith("],      dtype=float32)")

key = jax.random.key(0)
assert jnp.issubdtype(jax.typeof(key).dtype, jax.dtypes.prng_key) and jax.typeof(key).shape == ()

def drawn(i, carry):
    return jax.random.fold_in(carry[0], i), jnp.where(i > 0, 1, 2)

kept, count = jax.lax.fori_loop(0, 3, drawn, (key, jnp.int32(0)))
assert count.dtype == jnp.int32 and kept.dtype == key.dtype

from jax._src.tree_util import _registry
from jax.experimental import hijax

class Made(hijax.HiPrimitive):
    pass

assert list in _registry and int not in _registry and Made("made").name == "made"
children, meta = _registry[dict].to_iter({"b": 1, "a": 2})
assert list(children) == [2, 1] and _registry[dict].from_iter(meta, [4, 3]) == {"a": 4, "b": 3}
hijax.control_flow_allowed_effects.add_type(Made)
hijax.register_hitype(Made, Made)
try:
    Made("made").bind(x)
except NotImplementedError:
    pass
else:
    raise SystemError("bound")

def refuse(v):
    raise ValueError("not this one")

def watched(v):
    jax.debug.callback(refuse, v)
    return v

def asked(v):
    return jax.pure_callback(refuse, jax.ShapeDtypeStruct((), "f4"), v)

for function, eager in ((watched, ValueError), (asked, jax.errors.JaxRuntimeError)):
    for way, kind in ((function, eager), (jax.jit(function), jax.errors.JaxRuntimeError)):
        try:
            way(jnp.float32(1))
        except kind as error:
            assert "not this one" in str(error)
        else:
            raise SystemError(function)
seen = []
jax.pure_callback(lambda v: seen.append(v) or v, jax.ShapeDtypeStruct((), "f4"), jnp.float32(1))
jax.debug.callback(seen.append, jnp.float32(1))
assert all(type(v) is type(x) for v in seen)

def scaled(v):
    return 2 * v
scaled.note = "kept"
assert jax.vmap(scaled).note == jax.jit(scaled).note == "kept"
for transform in (lambda t: jax.jvp(scaled, (1.0,), (t,))[0], lambda t: jax.vjp(scaled, 1.0)[0],
                  lambda t: jax.linearize(scaled, 1.0)[0]):
    assert transform(jnp.float32(1)).dtype == "float32"
tree = {"a": x}
assert jax.block_until_ready(tree) is tree
indefinite = jnp.diag(jnp.array([1.0, -1.0]))
for factor in (jnp.linalg.cholesky, jax.lax.linalg.cholesky, jax.scipy.linalg.cholesky):
    for way in (factor, jax.jit(factor), lambda a: jax.vmap(factor)(a[None])[0]):
        assert jnp.isnan(way(indefinite)).sum() == 3
lowered = jax.jit(lambda v: v + 1).lower(1.0)
compiled = lowered.compile()
assert isinstance(lowered, jax.stages.Lowered) and isinstance(compiled, jax.stages.Compiled)
assert compiled(1.0) == 2.0 and compiled(1.0).dtype == np.float32
jax.config.update("jax_numpy_dtype_promotion", "strict")
assert jax.jit(lambda v, n: v > n)(jnp.arange(3), jnp.asarray(1)).tolist() == [False, False, True]
"""


def test_what_suites_borrow_from_that_of_jax():
    done = run(INSTALLED + BORROWED, x64="0")
    assert done.returncode == 0, done.stderr


HALVES = """
import numpy as np, jax, jax.numpy as jnp

kinds = [jnp.float16]
try:
    import ml_dtypes
    kinds.append(jnp.bfloat16)
except ImportError:
    pass
for is_on in (False, True):
    jax.config.update("jax_enable_x64", is_on)
    for kind in kinds:
        x, single = jnp.arange(4, dtype=kind), jnp.ones(4, jnp.float32)
        key = jax.random.key(0)
        stored = [x + 1, x * x, jnp.sin(x), x.sum(), jnp.zeros(3, kind), jnp.ones_like(x), kind(2),
                  single.astype(kind), jnp.asarray([1.0, 2.0], kind), jnp.stack([x, x]),
                  jnp.maximum(x, 0), jnp.where(x > 1, x, 0.0), jax.nn.relu(x),
                  jax.random.normal(key, (2,), kind), jax.lax.convert_element_type(single, kind)]
        number = kind.dtype.type(2)
        weak = jnp.asarray(2.0)
        stored += [x * 2.0, 2.0 / (x + 1), 1.0 - x, x * np.int32(3), x @ x, x**2, x * weak,
                   weak + x, jnp.where(x > 0, x, weak), x * number,
                   jnp.asarray(number), number * x, jnp.multiply(number, 3), -x, x.mean(), x.max(),
                   x.clip(0, 1), x.cumsum(), x.at[0].set(1.0), x.at[1:].add(x[1:]), x.at[2].get()]
        square = lambda v: (v**2).sum()
        compiled = [lambda v: 2 * v, lambda v: v * x, square, jax.grad(square), jnp.zeros_like,
                    lambda v: jax.lax.cond(v[0] > 1, lambda: v, lambda: v * 2.0),
                    lambda v: jax.lax.scan(lambda c, a: (c + a, c * a), v[0], v)[1],
                    lambda v: jax.jit(lambda a: a + 1)(v * 2), jax.vmap(lambda a: a * 2)]
        stored += [jax.jit(f)(x) for f in compiled]
        stored += [jax.grad(square)(x), jax.jit(lambda t: t)({"a": x})["a"],
                   jax.eval_shape(square, x)]
        assert {a.dtype for a in stored} == {np.dtype(kind)}, [a.dtype for a in stored]
        stored.pop()
        assert all(isinstance(a, jax.Array) for a in stored)
        single_ones = [x.astype(jnp.float32), x * single, single @ x, x * np.float32(2),
                       jnp.add(x, single), single * x,
                       jnp.sum(x, dtype=jnp.float32), jax.jit(lambda v: v * x)(single),
                       jax.jit(lambda v: v.astype(jnp.float32) * 2)(x),
                       jax.vmap(lambda v: v.astype(kind))(x)]
        assert {a.dtype for a in single_ones} == {np.dtype("f4")}, [a.dtype for a in single_ones]
        half = np.sin(np.asarray(x, "f4")).astype(kind.dtype)
        assert (np.asarray(jnp.sin(x)) == half).all()
        assert jax.grad(lambda v: (v**2).sum())(x).tolist() == [0.0, 2.0, 4.0, 6.0]
        carry, rows = jax.lax.scan(lambda c, v: (c + v, c * v), x[0], x)
        assert carry == 6.0 and rows.tolist() == [0.0, 0.0, 2.0, 9.0]
        assert jnp.finfo(kind).bits == jnp.finfo(x).bits == 16

        def several(v):
            low = v.astype(kind)
            return v, low, {"a": jnp.astype(v / 3, kind)}, low + v

        jitted = jax.jit(several)
        dtypes = [np.dtype(d) for d in ("f4", kind, kind, "f4")]
        for made in (jitted(single), jitted(single), jitted.lower(single).compile()(single),
                     jax.jit(lambda v: jitted(v))(single), jax.eval_shape(jitted, single),
                     jax.eval_shape(several, single)):
            assert [a.dtype for a in jax.tree.leaves(made)] == dtypes, made
        third = jitted(single)[2]["a"]
        assert (third == (np.ones(4, "f4") / 3).astype(kind.dtype)).all()
        assert jax.vmap(jitted)(single)[1].tolist() == [1.0] * 4
        assert jax.grad(lambda v: jitted(v)[1].sum())(single).tolist() == [1.0] * 4
        assert (x > 1).dtype == bool and x.argmax() == 3
import funcgrad as fg
try:
    fg.jit(lambda v: v)(np.ones(2, np.float16))
except TypeError as error:
    assert "float16 has no arithmetic on CPUs" in str(error)
else:
    raise SystemError
"""


def test_floats_of_16_bits_are_stored_and_computed_with_in_32():
    done = run(INSTALLED + HALVES, x64="0")
    assert done.returncode == 0, done.stderr


SPARSE = """
import numpy as np, jax, jax.numpy as jnp
from jax.experimental import sparse

places = jnp.array([[0, 1], [1, 0], [0, 1]])
A = sparse.BCOO((jnp.array([1.0, 2.0, 3.0]), places), shape=(2, 2))
x = jnp.array([1.0, 2.0])
assert (A @ x).tolist() == [8.0, 2.0] and isinstance(A @ x, jax.Array)
assert (x @ A).tolist() == [4.0, 4.0] and (A.T @ x).tolist() == [4.0, 4.0]
assert A.todense().tolist() == [[0.0, 4.0], [2.0, 0.0]] and A.nse == 2
assert A.indices.tolist() == [[0, 1], [1, 0]] and A.transpose().nse == 2
slopes = jax.jit(jax.grad(lambda A, x: jnp.sum((A @ x) ** 2)))(A, x)
assert isinstance(slopes, sparse.BCOO) and slopes.data.tolist() == [32.0, 4.0]
assert jax.tree.leaves(2 * A)[0].tolist() == [8.0, 4.0]
import scipy.sparse
B = sparse.BCOO.from_scipy_sparse(scipy.sparse.csc_array(np.array([[0.0, 4.0], [2.0, 0.0]])))
assert isinstance(B, sparse.BCOO) and (B @ x).tolist() == [8.0, 2.0]
product = jax.jit(sparse.sparsify(lambda a, b: a @ b))
assert product(B, x).tolist() == [8.0, 2.0] and product(x, B).tolist() == [4.0, 4.0]
assert sparse.BCOO.fromdense(jnp.eye(2)).todense().tolist() == [[1.0, 0.0], [0.0, 1.0]]
try:
    sparse.BCOO((jnp.ones((2, 2)), places), shape=(2, 2, 2))
except Exception as error:
    assert "matrices are sparse here, not batches of them" in str(error)
else:
    raise SystemError
"""


def test_sparse_matrices():
    done = run(INSTALLED + SPARSE)
    assert done.returncode == 0, done.stderr


WEAK = """
import jax, jax.flatten_util, jax.numpy as jnp

def counted(n, key):
    def step(state):
        n, narrow = state
        chosen = jax.lax.cond(n > 1, lambda: (n, narrow), lambda: (narrow, n))
        other = jax.lax.switch(n, [lambda: 1, lambda: n])
        return n + 1, narrow + chosen[0] - chosen[1] + 0 * other
    n, narrow = jax.lax.while_loop(lambda state: state[0] < 4, step, (n, jnp.zeros((), int)))
    walked, rows = jax.lax.scan(lambda c, _: (c + 1, c), 0, None, length=3)
    either = jax.lax.cond(narrow > 0, lambda: 1, lambda: 2)
    assert all(x.weak_type for x in (n, walked, either))
    single = jnp.ones((), jnp.float32)
    assert jax.eval_shape(lambda: n).dtype == jnp.asarray(1).dtype
    return n * single, walked * single, either * single, narrow, jax.random.bernoulli(key)

jax.config.update("jax_numpy_dtype_promotion", "strict")
for bits in (32, 64):
    jax.config.update("jax_enable_x64", bits == 64)
    found = jax.jit(lambda key: counted(0, key))(jax.random.key(1))
    assert [x.dtype.name for x in found] == [*3 * ["float32"], f"int{bits}", "bool"], found
    assert [x.item() for x in found[:4]] == [4.0, 3.0, 1.0, 3]

weak, chosen = jnp.asarray(2), jnp.asarray(True)
results = [weak + 1, -weak, weak[None], jnp.where(chosen, 1, -1), jax.lax.select(chosen, 1, 2),
           jnp.sqrt(2), jnp.maximum(weak, 1), jax.jit(lambda x: x + 1)(weak), jnp.abs(-1),
           jax.lax.cond(chosen, lambda: 1, lambda: 2),
           jax.lax.fori_loop(0, 3, lambda i, c: c + 1, 0)]
assert all(x.weak_type for x in results), results
rows = jnp.broadcast_to(weak, 3)
same = jax.custom_jvp(lambda a: a)
same.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
mapped = [jax.vmap(f)(rows) for f in (
    lambda a: a + 1, lambda a: jnp.where(a > 0, 1, -1), lambda a: weak, lambda a: 1,
    lambda a: jax.lax.fori_loop(0, 2, lambda i, c: c + 1, a), jax.jit(lambda a: a),
    lambda a: jax.lax.cond(a > 0, lambda: a, lambda: a), same)]
mapped += [jax.eval_shape(lambda: weak),
           jax.eval_shape(lambda a: a + 1, weak)]
assert all(x.weak_type for x in mapped), mapped
assert (jax.vmap(lambda a: a + jnp.float32(1))(rows) == 3).all()
assert not jax.vmap(lambda a: a * 2)(jnp.arange(3)).weak_type
assert repr(weak).endswith(", weak_type=True)")
flags, counts, halves = jnp.arange(3) == 1, jnp.arange(3, dtype="int32"), jnp.ones(3, "float32")
with jax.numpy_dtype_promotion("standard"):  # what is weak decides where its kind is higher
    for name, f in (
        ("int32", lambda: (1 - flags) * counts), ("float32", lambda: (counts * 1.0) * halves),
        ("uint8", lambda: (counts.astype("uint8") + 1) * counts.astype("uint8")),
        ("float32", lambda: (flags * 2.0) * halves), ("uint8", lambda: (flags + 1) * jnp.uint8(2)),
        ("float32", lambda: jnp.multiply(counts, 2.0) * halves),
        ("int32", lambda: jnp.where(flags, 1, 0) * counts), ("float64", lambda: 1.0 * counts),
    ):
        for found in (f(), jax.jit(f)(), jax.vmap(lambda _: f())(halves)):
            assert found.dtype == name, (name, found.dtype)
for find in (jax.lax.top_k, jax.jit(jax.lax.top_k, static_argnums=1)):
    assert [x.tolist() for x in find(jnp.arange(3), 2)] == [[2, 1], [2, 1]]
    assert find(jnp.arange(3), 2)[1].dtype == "int32"
strong = [jnp.arange(3), jnp.zeros(3), jnp.sum(weak), jnp.argmax(weak), jnp.int32(2),
          weak.astype(int), jnp.where(chosen, weak, jnp.ones(2)),
          jax.jit(lambda x: x)(jnp.int32(1))]
assert not any(x.weak_type for x in strong), strong
for lengths in ((2, 3), jnp.array([2, 3])):
    places = jnp.unravel_index(jnp.array([5, 99, -1]), lengths)
    assert [x.tolist() for x in places] == [[1] * 3, [2] * 3]

@jax.custom_vjp
def product(x, y):
    return x * y
product.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, ct: (ct * kept[1], ct * kept[0]))
jax.config.update("jax_enable_x64", False)
assert jax.grad(product)(2.0, 3.0) == jax.jit(jax.grad(product))(2.0, 3.0) == 3.0
vector, unravel = jax.flatten_util.ravel_pytree({"a": 1.0, "b": jnp.ones(2)})
assert vector.dtype == unravel(vector)["a"].dtype == "float32"

step = jax.jit(lambda t, n: {k: v + n for k, v in t.items()})
tree = {"a": jnp.ones(3), "b": jnp.float32(2)}
for n in (1, 2, jnp.asarray(3), jnp.int64(4)):
    if isinstance(n, jax.Array) and not n.weak_type:
        jax.config.update("jax_numpy_dtype_promotion", "standard")
    found = step(tree, n)
    assert all(type(x) is type(tree["a"]) for x in found.values())
    assert found["b"].shape == () and found["b"] == 2 + n and found["a"].tolist() == [1.0 + n] * 3
for bits in (64, 32, 64):
    jax.config.update("jax_enable_x64", bits == 64)
    assert jax.jit(jnp.sin)(1.0).dtype == f"float{bits}"
    assert jax.jit(lambda x: x / 2)(jnp.arange(2)).dtype == f"float{bits}"
"""


def test_numbers_of_python_stay_weak_through_loops_and_branches():
    done = run(INSTALLED + WEAK, x64="0")
    assert done.returncode == 0, done.stderr
