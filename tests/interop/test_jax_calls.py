"""Calls of programs for JAX: donated arrays, options, lowerings that call Python, constants."""

from __future__ import annotations

import numpy as np
import pytest

from funcgrad import lax
from tests import forks

INSTALLED = "from funcgrad.interop import jax as neighbour; neighbour.install()\n"

DONATED = """
import warnings
import numpy as np, jax, jax.numpy as jnp

double = jax.jit(lambda t: {k: 2 * v for k, v in t.items()}, donate_argnums=0)
x = {"a": jnp.ones(1000), "b": jnp.array(3)}
before = jax.tree.map(lambda leaf: leaf.unsafe_buffer_pointer(), x)
y = double(x)
assert jax.tree.map(lambda leaf: leaf.unsafe_buffer_pointer(), y) == before
assert y["a"].tolist() == [2.0] * 1000 and y["b"] == 6 and not y["a"].is_deleted()
assert all(leaf.is_deleted() for leaf in x.values())
assert x["a"].shape == (1000,) and x["b"].dtype == jnp.int32
for use in (double, lambda t: t["a"] + 1, lambda t: jnp.sin(t["a"]), lambda t: np.sin(t["a"]),
            lambda t: float(t["b"]), lambda t: t["a"][0]):
    try:
        use(x)
    except RuntimeError as error:
        assert str(error).startswith("Array has been deleted with shape=")
    else:
        raise SystemExit("deleted arrays are used")

kept = jax.jit(lambda x: x, donate_argnums=0)
z = kept(w := jnp.ones(3))
assert w.is_deleted() and z.tolist() == [1.0] * 3
assert jax.grad(lambda x: kept(x).sum())(jnp.ones(2)).tolist() == [1.0, 1.0]

total = jax.jit(lambda x, y: x + y.sum(), donate_argnums=(0, 1))
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    total(jnp.ones(3), unused := jnp.ones(4))
    total(jnp.ones(3), jnp.ones(4))
assert [str(w.message).split(":")[1].split(".")[0] for w in seen] == [" float32[4]"], seen
assert not unused.is_deleted()
unused.delete()
assert unused.is_deleted()
"""

SHORT_WAY = """
import jax, jax.numpy as jnp
from funcgrad.api.compilation import Jitted

run = jax.jit(lambda p: {"y": p["x"] * p["w"], "w": p["w"] + 1})
def kinds(w, x=jnp.ones(3)):
    return [(y.dtype.name, y.weak_type, y.tolist()) for y in jax.tree.leaves(run({"x": x, "w": w}))]
weak, strong = jnp.array(2), jnp.float32(2)
first = kinds(weak), kinds(strong), kinds(weak, jnp.array(3))
def general(self, *args):
    raise SystemExit("the general way")
Jitted._call_general = general
assert first == (kinds(weak), kinds(strong), kinds(weak, jnp.array(3)))
assert [[k[:2] for k in found] for found in first] == [
    [("int32", True), ("float32", False)],
    [("float32", False), ("float32", False)],
    [("int32", True), ("int32", True)],
]
"""

TYPES = """
import jax, jax.numpy as jnp
half = jax.ShapeDtypeStruct((2, 3), jnp.float16)
assert half.dtype == jnp.float16 and half == half.update(shape=(2, 3))
assert half != jax.ShapeDtypeStruct((2, 3), jnp.float32)
assert jax.ShapeDtypeStruct.like(jnp.ones(2, jnp.float16)).dtype == jnp.float16
try:
    import ml_dtypes
except ImportError:
    pass
else:
    assert jax.ShapeDtypeStruct.like(jnp.ones(2, jnp.bfloat16)).dtype == jnp.bfloat16
doubled, kept = jax.eval_shape(lambda t: (2 * t["x"], t["x"].astype(jnp.float16)), {"x": half})
assert kept == half and doubled.shape == (2, 3)
assert type(doubled) is type(kept) is jax.ShapeDtypeStruct
assert jax.typeof(half).dtype == jnp.float16
weak = jax.typeof(jax.ShapeDtypeStruct((), jnp.int32, weak_type=True))
assert (weak.dtype, weak.weak_type) == (jnp.int32, True)
try:
    jax.jit(lambda x: x)(half)
except ValueError as error:
    assert "a type without values" in str(error)
else:
    raise SystemExit("a type is taken as an array")
"""

WITHIN = """
import jax, jax.numpy as jnp
from jax import lax

x, w = jnp.ones(3, jnp.float16), jnp.ones((), jnp.float32)
twice = jax.custom_vjp(lambda x, w: (2 * x, 2 * w))
twice.defvjp(lambda x, w: (twice(x, w), None), lambda _, ct: ct)
checked = lambda x, w: lax.cond(
    w > 2, lambda: jax.pure_callback(lambda *a: a, jax.eval_shape(lambda: (x, w)), x, w),
    lambda: (x, w))
cases = {
    "while": (lambda x, w: lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, (c[1] * c[2]).astype(x.dtype), 2 * c[2]),
        (0, x, w))[1:], (16, 32)),
    "nest": (lambda x, w: lax.fori_loop(0, 2, lambda i, c: lax.fori_loop(
        0, 2, lambda j, d: (2 * d[0], d[1] * d[0].sum()), c), (x, w)), (16, 32)),
    "scan": (lambda x, w: lax.scan(
        lambda c, _: (((c[0] * c[1]).astype(x.dtype), c[1]), (c[0], c[1], 2 * c[0])), (x, w),
        length=3), (16, 32, 16, 32, 16)),
    "converted within": (lambda x, w: lax.scan(
        lambda c, _: (c, (c.astype(jnp.float16), 2 * c.astype(jnp.float16))), w, length=3),
        (32, 16, 16)),
    "number": (lambda x, w: lax.scan(lambda c, e: (c + e, c), 0.0, x), (16, 16)),
    "map": (lambda x, w: lax.map(lambda e: (2 * e, w), x), (16, 32)),
    "cond": (lambda x, w: lax.cond(w > 0, lambda: (2 * x, w), lambda: (x, w)), (16, 32)),
    "callback": (checked, (16, 32)),
    "rule": (twice, (16, 32)),
    "again": (jax.checkpoint(lambda x, w: (2 * x, 2 * w)), (16, 32)),
    "vmap": (lambda x, w: jax.vmap(lambda x: lax.fori_loop(
        0, 2, lambda i, c: (2 * c[0], 2 * c[1]), (x, w)))(x), (16, 32)),
    "grad": (jax.grad(lambda x, w: lax.fori_loop(
        0, 2, lambda i, c: (2 * c[0], c[1] * c[0].sum()), (x, w))[1], (0, 1)), (16, 32)),
    "constants": (lambda x, _: (x * w, x * 2.5, x * jnp.asarray(2.0)), (32, 16, 16)),
}
for name, (f, bits) in cases.items():
    found = tuple(8 * a.dtype.itemsize for a in jax.tree.leaves(jax.eval_shape(f, x, w)))
    assert found == bits, (name, found)
"""

COMPILED = """
import jax, jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import mlir

lowered = jax.jit(lambda x: 2 * x).lower(jnp.array(3.0))
assert lowered.compile(compiler_options={"xla_gpu_autotune_level": "0"})(jnp.array(3.0)) == 6.0
try:
    lowered.compile({"no such": 1})
except jax.errors.JaxRuntimeError as error:
    assert "No such compile option: 'no such'" in str(error)
else:
    raise SystemExit("any option is taken")

calls = []
def call(x):
    calls.append(x.shape)
    return (2 * x,)
def lower(ctx, x):
    found, _, kept = mlir.emit_python_callback(
        ctx, call, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False)
    ctx.module_context.add_keepalive(kept)
    return found
twice_p = Primitive("twice")
twice_p.def_impl(lambda x: 2 * x)
twice_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(twice_p, lower)
assert jax.jit(lambda x: twice_p.bind(x) + 1)(jnp.ones(2)).tolist() == [3.0, 3.0]
assert calls == [(2,)] and twice_p.bind(jnp.ones(3)).tolist() == [2.0] * 3 and len(calls) == 1

emits_p = Primitive("emits")
emits_p.def_impl(lambda x: 3 * x)
emits_p.def_abstract_eval(lambda x: x)
from jax._src.lib.mlir.dialects import hlo
mlir.register_lowering(emits_p, lambda ctx, x: hlo.MulOp(x, x).results)
assert jax.jit(emits_p.bind)(jnp.ones(2)).tolist() == [3.0, 3.0]
"""

CONSTANTS = """
import jax, jax.numpy as jnp
from jax import lax

number, row = jnp.array(2), jnp.ones(3)
def closing(x):
    return jax.make_jaxpr(lambda y: number * row * x + y)(x)
known = closing(1.0)
assert known.consts[0] is number and known.consts[1] is row
assert [v.aval.shape for v in known.jaxpr.constvars] == [(), (3,)]
def order(x):
    found = jax.make_jaxpr(lambda y: x * row + number + y)(x)
    assert [jnp.shape(c) for c in found.consts] == [(), (3,), ()]
    return jax.core.eval_jaxpr(found.jaxpr, found.consts, x)[0]
assert jax.jit(order)(1.0).tolist() == [4.0] * 3
names = [eqn.primitive.name for eqn in jax.make_jaxpr(lambda x: x[None] * x[:, None])(row).eqns]
assert names == ["broadcast_in_dim", "broadcast_in_dim", "mul"], names

with jax.numpy_dtype_promotion("strict"):  # arrays of weak numbers are weak, traced or not
    assert jax.jit(lambda n: jnp.array(n) + row)(2).tolist() == [3.0] * 3
    assert jax.jit(lambda n: jnp.ones_like(n) + row)(2).tolist() == [2.0] * 3
def of_number(n):
    assert n.dtype == jnp.int32 and jnp.iinfo(n.dtype).max == 2**31 - 1
    return n
assert jax.jit(of_number)(2) == 2
assert jax.grad(lambda x: jnp.float32(2) * x**2)(3.0) == 12.0
x = lax.with_sharding_constraint(row, jax.sharding.SingleDeviceSharding(jax.devices()[0]))
assert x.tolist() == [1.0] * 3
"""

WEAK = """
import jax, jax.numpy as jnp

@jax.custom_vjp
def f(x, state):
    n, y = state
    return n + jnp.where(y > 0, 1, 0), y * x
f.defvjp(lambda x, s: (f(x, s), None), lambda r, ct: (ct[1], (None, ct[1])))
def count(x):  # the function is traced again for lanes, whose numbers are arrays
    return jax.lax.while_loop(lambda s: s[1] < 10, lambda s: f(x, s), (0, 1.0))[0]
for run in (jax.vmap(count), jax.jit(jax.vmap(count)), jax.vmap(jax.jit(count))):
    found = run(jnp.array([2.0, 3.0]))
    assert found.tolist() == [4, 3] and found.dtype == jnp.int32

@jax.custom_vjp
def scaled(x, n):
    return x * n
seen = []
def backward(n, ct):
    seen.append(n.weak_type if hasattr(n, "weak_type") else n.aval.weak_type)
    return ct * n, None
scaled.defvjp(lambda x, n: (x * n, n), backward)
sign = lambda x: scaled(x, jnp.where(x > 0, 1, -1))  # residuals are as weak as they were
for run in (jax.grad(sign), jax.grad(jax.jit(sign)), jax.jit(jax.grad(jax.jit(sign)))):
    assert run(2.0) == 1.0
assert seen == [True] * len(seen) and len(seen) >= 3, seen

assert jax.grad(jnp.sin, reduce_axes=())(0.0) == 1.0  # a parameter that JAX only accepts
assert jax.value_and_grad(jnp.sin, reduce_axes=())(0.0)[1] == 1.0
assert jax.vjp(jnp.sin, 0.0, reduce_axes=())[1](2.0)[0] == 2.0
for word in (jax.grad, jax.value_and_grad):
    try:
        word(jnp.sin, reduce_axes=("i",))
    except NotImplementedError:
        continue
    raise AssertionError(word)

counted = jax.make_jaxpr(lambda n: n + 1)(0)  # of a weak integer, and carried as a strong one
step = lambda n: jax.core.eval_jaxpr(counted.jaxpr, counted.consts, n)[0]
for run in (lambda n: jax.lax.while_loop(lambda n: n < 5, step, n),
            lambda n: jax.lax.scan(lambda n, _: (step(n), n), n, None, 5)[0]):
    for f in (run, jax.jit(run)):
        assert f(jnp.int32(0)) == 5 and f(jnp.int32(0)).dtype == jnp.int32

from jax.extend.core import Primitive
from jax.interpreters import ad

same_p = Primitive("same")  # results are as weak as the types say, also where nothing traces them
same_p.def_impl(lambda x: x)
same_p.def_abstract_eval(lambda x: x)
ad.primitive_jvps[same_p] = lambda x, t: (same_p.bind(*x), t[0])
pair_p = Primitive("pair")
pair_p.multiple_results = True
pair_p.def_impl(lambda x: [x, x * 2])
pair_p.def_abstract_eval(lambda x: [x, jax.core.ShapedArray(x.shape, x.dtype)])
weak, strong = jnp.asarray(5), jnp.arange(2)
found = []
f = lambda x: (found.append(same_p.bind(weak).weak_type), x)[1]
jax.grad(f)(1.0)
assert found == [True] and same_p.bind(weak).weak_type and not same_p.bind(strong).weak_type
assert [x.weak_type for x in pair_p.bind(weak)] == [True, False]
"""

KEYS = """
import numpy as np, jax, jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive, jaxpr_as_fun
from jax.interpreters import batching, mlir

def f(k):
    return jax.random.normal(jax.random.split(k)[1], (2,))

def converted(ks):
    g, values = jax.closure_convert(lambda x: x * jax.vmap(f)(ks), 1.0)
    return g(1.0, *values)

drawn_p = Primitive("drawn")
drawn_p.multiple_results = True
drawn_p.def_impl(lambda k: [f(k), k])
drawn_p.def_abstract_eval(
    lambda k: [jax.core.ShapedArray((2,), np.float32), jax.core.ShapedArray(k.shape, k.dtype)])
mlir.register_lowering(drawn_p, mlir.lower_fun(lambda k: [f(k), k]))
batching.primitive_batchers[drawn_p] = lambda args, dims: (
    jax.vmap(lambda k: (f(k), k), in_axes=dims)(*args), (0, 0))

def by_primitive(k):
    numbers, same = drawn_p.bind(k)
    return numbers + 0 * f(same)

MAPS = {
    "batches": lambda ks: lax.map(lambda t: f(t["k"]), {"k": ks}, batch_size=3),
    "whole batches": lambda ks: lax.map(f, ks, batch_size=2),
    "keys by batches": lambda ks: jax.vmap(f)(lax.map(lambda k: k, ks, batch_size=3)),
    "scan": lambda ks: lax.scan(lambda c, k: (c, f(k)), (), ks)[1],
    "read program": lambda ks: jnp.stack(jax.core.eval_jaxpr(
        (c := jax.make_jaxpr(jax.vmap(f))(ks)).jaxpr, c.consts, ks))[0],
    "constants": lambda ks: jnp.stack(jaxpr_as_fun(
        jax.make_jaxpr(lambda x: x * jax.vmap(f)(ks))(1.0))(1.0))[0],
    "closure": converted,
    "primitive": jax.vmap(by_primitive),
    "each": lambda ks: jnp.stack([by_primitive(k) for k in ks]),
    "callback": jax.vmap(lambda k: jax.pure_callback(
        f, jax.ShapeDtypeStruct((2,), np.float32), k, vmap_method="sequential")),
}
for kind in (jax.random.key, jax.random.PRNGKey):
    keys = jax.random.split(kind(0), 4)
    wanted = np.stack([f(k) for k in keys])
    for name, mapped in MAPS.items():
        for way in (lambda g: g, jax.jit):
            np.testing.assert_allclose(way(mapped)(keys), wanted, 1e-5, err_msg=name)
k = jax.random.key(0)
assert jnp.result_type(k) == k.dtype == jax.make_jaxpr(f)(k).jaxpr.invars[0].aval.dtype
"""


RULES = """
import numpy as np, jax, jax.numpy as jnp

X, seen = np.arange(3.0), []

def noting(*values):
    seen.extend(jax.typeof(v).dtype for v in values)

@jax.custom_vjp
def pulled(x, d):
    noting(x, d["X"])
    return (x * d["X"]).sum()

def forward(x, d):
    return pulled(x, d), (x, d)

def backward(kept, g):
    noting(kept[1]["X"])
    return g * kept[1]["X"], {"X": g * kept[0]}

pulled.defvjp(forward, backward)

@jax.custom_jvp
def pushed(x, d):
    noting(x, d)
    return x * d

@pushed.defjvp
def pushed_jvp(primals, tangents):
    noting(*primals, *tangents)
    return pushed(*primals), tangents[0] * primals[1]

@jax.custom_batching.custom_vmap
def mapped(x):
    noting(x)
    return 2 * x

mapped.def_vmap(lambda size, is_mapped, x: (2 * x, True))

def closed(x):
    noting(x)
    return x * X

x = jnp.ones(3)
results = [
    pulled(x, {"X": X}), jax.grad(pulled)(x, {"X": X}), jax.vjp(pulled, X, {"X": X})[1](1.0),
    pushed(X, X), jax.jvp(pushed, (X, X), (X, X)), mapped(X), jax.jit(mapped)(X),
    jax.closure_convert(closed, X)[0](X), jax.vjp(lambda x: 0.0, x)[1](jnp.float32(2.0)),
    jax.vjp(lambda x: 0.0, x)[1](2.0),
]
assert set(seen) == {jnp.dtype("float32")}, seen
assert {leaf.dtype for leaf in jax.tree.leaves(results)} == {jnp.dtype("float32")}
assert isinstance(pulled, jax.custom_derivatives.custom_vjp)
assert all(isinstance(leaf, jax.Array) for leaf in (pulled(X, {"X": X}), pushed(X, X), mapped(X)))
"""


UPDATES = """
import warnings
import jax, jax.numpy as jnp

x = jnp.array([1, 1])
wanted = {"set": 0, "add": 1, "multiply": 0, "min": 0, "max": 1, "divide": float("inf")}
for way in (lambda f: f, jax.jit):
    for name, first in wanted.items():
        for value in (0.5, jnp.float32(0.5), 0.5 + 1j):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                made = way(lambda x: getattr(x.at[0], name)(value))(x)
            assert made.tolist() == [first, 1], (name, value, made)
            assert FutureWarning in {w.category for w in seen}, (name, value)
"""


LOOPS = """
import jax, jax.numpy as jnp
from jax import lax

def summed(n):
    return lax.fori_loop(0 * n, n, lambda i, total: total + i, jnp.float32(0))

for n, wanted in ((4.0, 6.0), (3.5, 6.0), (0.0, 0.0), (jnp.float32(4), 6.0), (4, 6.0)):
    assert jax.jit(summed)(n) == wanted, n
assert [summed(4.0), summed(jnp.float32(3)), summed(3)] == [6.0, 3.0, 3.0]
assert jax.vmap(summed)(jnp.array([1.0, 5.0])).tolist() == [0.0, 10.0]

def written(x, i):
    return lax.dynamic_update_index_in_dim(x, 1.0, i, 0)

def noisy(x):
    lies = jax.typeof(x).sharding
    return x + jax.random.normal(jax.random.key(0), x.shape, x.dtype, out_sharding=lies)

assert jax.jit(noisy)(jnp.ones(3)).tolist() == noisy(jnp.ones(3)).tolist()

assert jax.jit(written)(jnp.zeros(3), 1).tolist() == [0.0, 1.0, 0.0]
assert jax.vmap(written)(jnp.zeros((2, 2)), jnp.arange(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]

# A carry that is weak at first only: the body is called once, as libraries count its calls.
three, calls = jnp.int32(3), []
def step(total, k):
    calls.append(jax.typeof(total).weak_type)
    return total + three * k, (total * k).astype(float)
def total_of(start, keys=jnp.arange(4)):
    return lax.scan(step, start, keys)
for run in (total_of, jax.jit(total_of), jax.jit(lambda s: total_of(s, 1 + jnp.arange(4)))):
    calls.clear()
    last, seen = run(1)
    assert last.dtype == jnp.int32 and calls in ([], [True]), calls
assert (last, seen.tolist()) == (31, [1.0, 8.0, 30.0, 76.0]), (last, seen)
def doubled(x):
    return lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + x, c[1] * 2.0), (1, 1.0))
assert [e.tolist() for e in jax.vmap(doubled)(jnp.array([2, 5]))] == [[9, 11], [16.0, 4.0]]
slope = jax.grad(lambda x: lax.scan(lambda c, _: (c * x, c), 1.0, None, length=3)[0])(2.0)
assert slope == 12.0
"""


@pytest.mark.parametrize(
    "code",
    [DONATED, SHORT_WAY, TYPES, WITHIN, COMPILED, CONSTANTS, WEAK, KEYS, RULES, UPDATES, LOOPS],
    ids=[
        "donated",
        "short way",
        "types",
        "types within",
        "compiled",
        "jaxpr",
        "weak",
        "keys",
        "rules",
        "updates",
        "loops",
    ],
)
def test_calls(code):
    done = forks.run(INSTALLED, code, variables={"JAX_ENABLE_X64": "0"})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_])
def test_windows_of_integers_that_begin_with_infinity(dtype):
    x = np.array([3, 1, 0, 2]).astype(dtype)
    found = lax.reduce_window(x, -np.inf, lax.max, (2,), (1,), "SAME")
    assert found.dtype == dtype
    assert found.tolist() == np.maximum(x, [*x[1:], x[-1]]).tolist()
    found = lax.reduce_window(x, np.inf, lax.min, (2,), (1,), "SAME")
    assert found.tolist() == np.minimum(x, [*x[1:], x[-1]]).tolist()
