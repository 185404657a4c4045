"""JAX's open primitives and programs that can be read, under its name."""

from __future__ import annotations

import pytest

from tests import forks

DEFINED = """
from funcgrad.interop import jax as neighbour
neighbour.install()
import numpy as np
import jax, jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

power_p = Primitive("power_of")
power_p.def_impl(lambda x, *, n: np.power(x, n))
power_p.def_abstract_eval(lambda x, *, n: jax.core.ShapedArray(x.shape, x.dtype))
mlir.register_lowering(power_p, mlir.lower_fun(lambda x, *, n: x**n, multiple_results=False))

def power(x, n):
    return power_p.bind(x, n=n)

def power_jvp(primals, tangents, *, n):
    (x,), (t,) = primals, tangents
    return power(x, n), n * power(x, n - 1) * ad.instantiate_zeros(t)

ad.primitive_jvps[power_p] = power_jvp
batching.primitive_batchers[power_p] = lambda args, dims, *, n: (power(args[0], n), dims[0])
"""

RULES = """
x = jnp.array([1.0, 2.0])
print(power(x, 3), jax.jit(power, static_argnums=1)(x, 3), jax.grad(power)(2.0, 3))
print(jax.jit(jax.vmap(jax.grad(jax.grad(lambda x: power(x, 3)))))(x))
print(lax.scan(lambda c, _: (power(c, 2), c), 3.0, None, length=2)[0])

both_p = Primitive("both")
both_p.multiple_results = True
both_p.def_impl(lambda x, y: [x + y, x - y])
both_p.def_abstract_eval(lambda x, y: [x, x])
def both(cts, x, y):
    a, b = map(ad.instantiate_zeros, cts)
    return [a + b, a - b]
ad.primitive_transposes[both_p] = both
ad.primitive_jvps[both_p] = lambda p, t: (
    both_p.bind(*p), both_p.bind(*map(ad.instantiate_zeros, t)))
def mapped(size, name, trace, args, dims):
    fronted = [batching.bdim_at_front(x, d, size) for x, d in zip(args, dims)]
    return both_p.bind(*fronted), [0, 0]
batching.axis_primitive_batchers[both_p] = mapped
mlir.register_lowering(both_p, mlir.lower_fun(lambda x, y: [x + y, x - y]))
f = lambda x, y: both_p.bind(x * x, y)[1]
print(jax.jit(jax.grad(f, argnums=(0, 1)))(3.0, 1.0), jax.vmap(f, (0, None))(x, 1.0))

twice_p = Primitive("twice")
twice_p.def_impl(lambda x: 2 * x)
twice_p.def_abstract_eval(lambda x: x)
ad.deflinear(twice_p, lambda ct: [twice_p.bind(ct)])
batching.defvectorized(twice_p)
mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: x + x, multiple_results=False))
print(jax.grad(lambda x: twice_p.bind(x) ** 2)(3.0), jax.vmap(twice_p.bind)(x))

bare_p = Primitive("bare")
bare_p.def_abstract_eval(lambda x: x)
for run in (lambda: bare_p.bind(1.0), lambda: jax.grad(bare_p.bind)(1.0),
            lambda: jax.vmap(bare_p.bind)(x), lambda: jax.jit(bare_p.bind)(x)):
    try:
        run()
    except NotImplementedError as error:
        print(str(error).splitlines()[0], str(error).splitlines()[-1])
"""

RULES_SAY = """\
[1. 8.] [1. 8.] 12.0
[ 6. 12.]
81.0
(Array(6., dtype=float64), Array(-1., dtype=float64)) [0. 3.]
24.0 [2. 4.]
bare has no rule for evaluation. Give it one: bare.def_impl(rule).
bare has no rule for differentiation. Give it one: jax.interpreters.ad.primitive_jvps[bare] = rule.
bare has no rule for batching. \
Give it one: jax.interpreters.batching.primitive_batchers[bare] = rule.
bare has no rule for compilation. \
Give it one: jax.interpreters.mlir.register_lowering(bare, mlir.lower_fun(function)).
"""

PROGRAMS = """
def eval_jaxpr(jaxpr, consts, *args):
    names = {**dict(zip(jaxpr.invars, args)), **dict(zip(jaxpr.constvars, consts))}
    read = lambda v: v.val if isinstance(v, Literal) else names[v]
    for eqn in jaxpr.eqns:
        params = eqn.primitive.get_bind_params(eqn.params)
        outs = eqn.primitive.bind(*map(read, eqn.invars), **params)
        names.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs]))
    return list(map(read, jaxpr.outvars))

table = np.array([1.0, 2.0])
table_of_jax = jnp.asarray(table)

@jax.custom_jvp
def custom(x):
    return x * x
custom.defjvps(lambda t, out, x: 10 * t)

def f(x):
    y = lax.scan(lambda c, t: (jnp.sin(c) * t, c), x, table)[0]
    return custom(jnp.exp(y)) + power(y, 2) + jax.jit(jnp.tanh)(y) + 1.0

closed = jax.make_jaxpr(f)(0.5)
run = lambda x: eval_jaxpr(closed.jaxpr, closed.consts, x)[0]
np.testing.assert_allclose(run(0.5), f(0.5))
np.testing.assert_allclose(jax.jit(jax.grad(run))(0.5), jax.grad(f)(0.5))
np.testing.assert_allclose(jax.vmap(run)(table), jax.vmap(f)(table))
np.testing.assert_allclose(jaxpr_as_fun(closed)(0.5)[0], f(0.5))
np.testing.assert_allclose(jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 0.5)[0], f(0.5))
jax.config.update("jax_enable_x64", False)
counted = jax.make_jaxpr(lambda n: (n + 1) * n - 2)(1)  # of a weak integer, then of a strong one
for n in (3, jnp.int32(3), jnp.asarray(3)):
    for outs in (eval_jaxpr(counted.jaxpr, [], n), jax.core.eval_jaxpr(counted.jaxpr, [], n),
                 jax.jit(jaxpr_as_fun(counted))(n)):
        assert type(outs[0]) is type(table_of_jax) and outs[0] == 10, outs
assert {v.aval.strip_weak_type().shape for v in counted.jaxpr.invars} == {()}
again = jax.make_jaxpr(lambda n: eval_jaxpr(counted.jaxpr, [], n))(jnp.int32(1))
assert [e.primitive for e in again.eqns] == [e.primitive for e in counted.eqns]
jax.config.update("jax_enable_x64", True)
found = [eqn.primitive.name for eqn in closed.eqns]
assert {"scan", "exp", "custom_jvp_call", "power_of", "jit"} <= set(found), found
assert next(e for e in closed.eqns if e.primitive is lax.scan_p).params["num_carry"] == 1
step = lambda c: lax.cond(c > 4, abs, jnp.exp, c) + 1
looping = lambda n: lax.while_loop(lambda c: c < 9, step, n)
loops = jax.make_jaxpr(looping)(1.0)
(loop,) = (e for e in loops.eqns if e.primitive is lax.while_p)
assert lax.cond_p in [e.primitive for e in loop.params["body_jaxpr"].eqns]
assert eval_jaxpr(loops.jaxpr, loops.consts, 1.0)[0] == looping(1.0)
call = closed.eqns[found.index("custom_jvp_call")]
assert call.primitive.get_bind_params(call.params)["subfuns"][0].call_wrapped(3.0)[0] == 9.0
table_of_rules = {lax.exp_p: jnp.log, power_p: None}
assert sum(eqn.primitive in table_of_rules for eqn in closed.eqns) == 2
inner = next(e.params["jaxpr"] for e in closed.eqns if e.primitive.name == "jit")
assert isinstance(inner, ClosedJaxpr) and inner.eqns[0].primitive == lax.tanh_p

# A program that is written anew: exp becomes sin.
original = jax.make_jaxpr(jnp.exp)(0.5)
sin_p = jax.make_jaxpr(jnp.sin)(0.5).eqns[-1].primitive
eqns = [e.replace(primitive=sin_p) if e.primitive == lax.exp_p else e for e in original.eqns]
other = ClosedJaxpr(original.jaxpr.replace(eqns=eqns), original.consts)
assert jaxpr_as_fun(other)(0.5)[0] == np.sin(0.5)
print(jax.make_jaxpr(lambda x: power(x, 2))(0.5))
"""

TYPES = """
assert jnp.asarray(2).weak_type and not jnp.ones(2).weak_type
x = jnp.ones(2, jnp.float32)
assert (x * jnp.asarray(2)).dtype == (jnp.array(2.0) * x).dtype == jnp.float32
with jax.numpy_dtype_promotion("strict"):
    assert jax.jit(lambda x, y: x + y)(x, jnp.asarray(2)).dtype == jnp.float32
assert jax.ShapeDtypeStruct((2,), jnp.float32, sharding=None).sharding is None
assert jax.eval_shape(lambda: jax.ShapeDtypeStruct((2,), float)).shape == (2,)
class Operand:
    def __radd__(self, other):
        return "mine"
assert x + Operand() == "mine"
assert np.isinf(jnp.array([1.0]) / jnp.array([0.0])).all()
def known(x):
    with jax.ensure_compile_time_eval():
        n = int(jnp.sum(jnp.arange(3)))
        return x * n + jnp.sin(x)
assert jax.jit(known)(0.0) == 0.0
assert jax.jit(lambda x: x).lower(x).compile(compiler_options={}) is not None
assert jax.lib.__version__ == jax.__version__
from jax.extend import backend
from jax.extend.core.primitives import sin_p
from jax.interpreters import partial_eval
assert sin_p == lax.sin_p and jax.lax.linalg.lu_p.name == "lu" and sin_p.bind(0.0) == 0.0
assert backend.get_backend().platform == jax.devices()[0].platform == "cpu"
assert partial_eval.dce_jaxpr(jax.make_jaxpr(lambda x: (x, x + 1))(x).jaxpr, [True, False])[1]
assert not hasattr(jax, "device_put_replicated")  # nor has JAX 0.10
def floats_stay(x):
    with jax.transfer_guard_host_to_device("allow"), jax.profiler.TraceAnnotation("here"):
        assert not jax.core.is_concrete(x)
        with jax.core.eval_context():
            assert jax.core.is_concrete(jnp.ones(2) + 1)
        return x, 2 * x
(same, double), (tangent, _) = jax.jvp(floats_stay, (3.0,), (1.0,))
assert type(same) is type(tangent) is float and double == 6.0
assert ad.add_tangents(ad.Zero.from_primal_value(x), 1.0) == 1.0
def annotated(x: "jax.stages.Lowered", y: jax.extend.core.AbstractToken | None = None): ...
assert isinstance(jax.extend.core.AbstractToken, type)
print("done")
"""


DERIVED = """
import inspect

class Scaled(Primitive):
    def impl(self, x, *, by):
        return x * by
    def abstract_eval(self, x, *, by):
        return x, jax.extend.core.no_effects

scaled_p = Scaled("scaled")
ad.deflinear(scaled_p, lambda ct, by: [scaled_p.bind(ct, by=by)])
x = jnp.arange(6.0).reshape(2, 3)
print(scaled_p.bind(2.0, by=3.0), jax.grad(lambda x: scaled_p.bind(x, by=3.0) ** 2)(2.0),
      scaled_p.abstract_eval(jax.typeof(x), by=1)[1] == frozenset())

program = jax.make_jaxpr(lambda x: (x @ x.T, x[:, 1:], jnp.concatenate([x, x]), x.reshape(6),
                                    lax.pad(x, 0.0, [(1, 0, 0), (0, 2, 0)])))(x)
shown = {name: value for eqn in program.eqns for name, value in eqn.params.items()}
print(*(shown[n] for n in ("dimension_numbers", "start_indices", "dimension", "new_sizes",
                           "padding_config")))
for eqn in program.eqns:
    with jax.extend.source_info_util.user_context(eqn.source_info.traceback):
        params = eqn.primitive.get_bind_params(eqn.params)
        eqn.primitive.bind(*(jnp.ones(v.aval.shape) for v in eqn.invars), **params)
make = jax.extend.core.gensym()
assert make(jax.typeof(x)) is not make(jax.typeof(x))
names = jax.extend.core.unsafe_get_axis_names_DO_NOT_USE
jax.vmap(lambda x: print(names()) or x, axis_name="i")(x)
from jax._src.interpreters.batching import BatchTracer
kinds = jax.interpreters.partial_eval.DynamicJaxprTracer, BatchTracer
at = lambda x, i: lax.dynamic_slice_p.bind(x, i, i, slice_sizes=(1, 1))
print(jax.jit(at)(x, 1), lax.concatenate_p.bind(x, x, dimension=0).shape,
      lax.dynamic_update_slice_p.bind(x, x[:1], 1, 0)[1])
jax.vmap(jax.jit(lambda x: print(*(isinstance(x, kind) for kind in kinds)) or x))(x)

kept = vars(jnp)  # of libraries that copy all names
assert kept["ones"] is jnp.ones and kept["linalg"] is jnp.linalg and "jit" in jax.__dict__
draws = [name for name, _ in inspect.getmembers(jax.random, inspect.isfunction)]
assert {"normal", "choice", "split"} <= set(draws), draws
kind = type(x)
are = {name for name, value in inspect.getmembers(kind) if isinstance(value, property)}
assert {"T", "at", "dtype", "ndim", "shape", "size"} <= are, are
print(jax.vmap(kind.sum)(x), jax.jit(kind.__mul__)(x, x).sum(), kind.max(x))
for sum_of in (lambda: x + x[0, :2], lambda: x @ x):
    try:
        sum_of()
    except TypeError as error:
        assert isinstance(error, ValueError)
counting = jax.make_jaxpr(lambda n: lax.while_loop(lambda n: n < 5, lambda n: n + 1, n))(1)
print(*(jax.core.eval_jaxpr(counting.jaxpr, [], n)[0].weak_type for n in (1, jnp.int64(1))))
found = jax.scipy.optimize.minimize(lambda x: ((x - 2) ** 2).sum(), jnp.ones(2), method="BFGS")
print(isinstance(found, jax.scipy.optimize.OptimizeResults), found[0], found.success, found.nit < 9)
for times in (lambda x: 1j * x, jax.jit(lambda x: 1j * x)):  # narrow floats decide how wide it is
    made = times(jnp.ones(2, jnp.float32))
    assert (made.dtype, made.weak_type) == (jnp.complex64, False), made
class Operator:
    shape, dtype = ((2, 3), (2, 3)), x.dtype
    def __call__(self, x):
        return 2 * x
assert jnp.allclose(jax.scipy.sparse.linalg.cg(Operator(), x)[0], x / 2)
print(jax.ShapeDtypeStruct(((2,), (3, 1)), float).shape)
"""

DERIVED_SAY = """\
6.0 36.0 True
(((1,), (0,)), ((), ())) (0, 1) 0 (6,) ((1, 0, 0), (0, 2, 0))
['i']
[[4.]] (4, 3) [0. 1. 2.]
True False
[ 3. 12.] 55.0 5.0
True False
True [2. 2.] True True
((2,), (3, 1))
"""


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (RULES, RULES_SAY),
        (PROGRAMS, "{ lambda a:~f64[] .\n    b:f64[] = power_of[n=2] a\n  in (b,) }\n"),
        (TYPES, "done\n"),
        (DERIVED, DERIVED_SAY),
    ],
    ids=["rules", "programs", "types", "derived"],
)
def test_programs(code: str, says: str) -> None:
    done = forks.run(DEFINED, code, flags=("-W", "error"), variables={"JAX_ENABLE_X64": "1"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == says
