"""Functions of the package jax whose arguments or results differ from NumPy's, in one process."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from funcgrad.interop import jax as neighbour; neighbour.install()
import collections, importlib.util, weakref
import numpy as np, jax, jax.api_util, jax.core, jax.extend.linear_util, jax.numpy as jnp
from jax import random

def refused(call, error=ValueError):
    try:
        call()
    except error:
        return True
    return False

# Fourier transforms: axes are different, as many as the name says; nothing becomes nothing.
x = jnp.ones((2, 3))
assert refused(lambda: jnp.fft.fft(x, axis=(0, 1))) and refused(lambda: jnp.fft.fft2(x, axes=[0]))
assert refused(lambda: jnp.fft.fftn(x, axes=[1, 1])) and refused(lambda: jnp.fft.fftfreq([1, 2]))
assert jnp.fft.fft(jnp.zeros(0, jnp.complex64)).shape == (0,)
assert jnp.fft.irfft2(jnp.fft.rfft2(x, axes=[0, 1]), s=(2, 3)).shape == (2, 3)

# Places in sorted arrays are int32, also where there are 64 bits; negative numbers count as 0.
with jax.enable_x64(True):
    found = jax.jit(lambda a: a.searchsorted(1.5))(jnp.arange(3.0))
    assert found == 2 and found.dtype == np.int32
    assert jnp.digitize(jnp.arange(2.0), jnp.arange(3.0)).dtype == np.int32
    assert jnp.interp(jnp.float32(0.5), *[jnp.arange(2, dtype=jnp.float32)] * 2).dtype == np.float32
assert jnp.bincount(jnp.array([-1, 2])).tolist() == [1, 0, 1]

# Symmetric matrices: of both triangles in numpy.linalg, of one in scipy.linalg.
full, lower = jnp.array([[2.0, 1.0], [1.0, 3.0]]), jnp.array([[2.0, 0.0], [1.0, 3.0]])
for function in (jnp.linalg.cholesky, jnp.linalg.eigvalsh, lambda a: jnp.linalg.eigh(a)[1] ** 2):
    slope = jax.grad(lambda a: function(a).ravel()[-1])(full)
    assert np.allclose(slope, slope.T) and abs(slope[0, 1]) > 0.01
    assert np.allclose(function(lower), function((lower + lower.T) / 2))
assert np.allclose(jax.scipy.linalg.cholesky(lower, lower=True), np.linalg.cholesky(full))
assert np.allclose(jnp.linalg.cholesky(lower, symmetrize_input=False), np.linalg.cholesky(full))

# Places outside.
row = jnp.array([10.0, 20.0, 30.0])
places = jnp.array([-1, -4, 5])
assert np.isnan(jnp.take_along_axis(row, places, 0)).tolist() == [False, True, True]
assert jnp.take_along_axis(row, places, 0, mode="clip").tolist() == [30.0, 10.0, 30.0]
assert jnp.take_along_axis(row, places, 0, mode="one_hot").tolist() == [30.0, 0.0, 0.0]
both = (jnp.array([1]), jnp.array([7]))
assert jnp.ravel_multi_index(both, (2, 3), mode="ignore").tolist() == [10]
unravel = jax.jit(lambda i, shape: jnp.unravel_index(i, shape))
assert [int(i) for i in unravel(jnp.int8(5), jnp.array([2, 3]))] == [1, 2]
assert jnp.unravel_index(jnp.int8(5), (2, 3))[0].dtype == np.int8
again = jax.jit(lambda x, i: x.at[i].apply(lambda x: x + 1))
assert again(jnp.zeros(3), jnp.array([0, 0, 2])).tolist() == [2.0, 0.0, 1.0]

# Indices: of JAX's kinds; known ones out of bounds raise where that is asked for.
assert refused(lambda: row[[0]], TypeError) and refused(lambda: row.at[[0]].set(1.0), TypeError)
assert refused(lambda: row[0.0], TypeError) and refused(lambda: row["a"], TypeError)
assert refused(lambda: jax.jit(lambda x, n: x[:n])(row, 2), IndexError)
assert row.at[jnp.array([7])].get(mode="promise_in_bounds").tolist() == [30.0] == [row[7]]
jax.config.update("jax_check_static_indices", True)
assert refused(lambda: row[7], IndexError)
assert refused(lambda: jax.jit(lambda x: x[7])(row), IndexError)
jax.config.update("jax_check_static_indices", False)

# Operators that only know @; images in PyTorch's way; functions without a rule.
class Twice:
    shape = (3, 3)
    __matmul__ = lambda self, x: 2 * x

found, _ = jax.scipy.sparse.linalg.cg(Twice(), jnp.ones((3, 2)))
assert np.allclose(found, 0.5)
ramp = jnp.arange(4, dtype=jnp.float32)
resized = jax.image.resize(ramp, (8,), "cubic-pytorch", antialias=False)
assert np.allclose(resized[:3], [-0.1055, 0.1914, 0.668], atol=1e-3)
assert refused(lambda: jax.custom_jvp(lambda x: x)(1.0), AttributeError)

# What fails is nan.
flat, side = jnp.ones((2, 2)), jnp.ones((2, 1))
upper = jnp.array([[1.0, 1.0], [0.0, 0.0]])
for solve in (
    lambda b: jnp.linalg.solve(flat, b), lambda b: jax.scipy.linalg.solve_triangular(upper, b),
    lambda b: jnp.linalg.lstsq(flat * np.nan, b)[0],
    lambda b: jax.lax.linalg.tridiagonal_solve(*[0 * row[:2]] * 3, b),
):
    for compute in (solve, jax.jit(solve)):
        assert not np.isfinite(compute(side)).any()
big = jnp.concatenate([jnp.eye(40)[:39], jnp.zeros((1, 40))])
for many in (1, 3):
    right = jnp.ones((40, many))
    assert not np.isfinite(jax.jit(jnp.linalg.solve)(big, right)).all()
    by_substitution = jax.jit(jax.scipy.linalg.solve_triangular)
    assert not np.isfinite(by_substitution(big, right)).all()
    assert (by_substitution(jnp.eye(40), right) == right).all()
bad = jnp.stack([jnp.eye(2), jnp.full((2, 2), jnp.inf)])
assert np.isnan(jnp.linalg.svd(bad)[1]).tolist() == [[False] * 2, [True] * 2]
assert np.isnan(jax.jit(jnp.linalg.eigvals)(bad)).tolist() == [[False] * 2, [True] * 2]
assert np.isnan(jnp.linalg.pinv(bad)[1]).all() and np.isnan(jnp.linalg.inv(jnp.ones((2, 2)))).all()

# Random keys.
assert random.PRNGKey(-1).tolist() == [0, 2**32 - 1] == jax.jit(random.PRNGKey)(-1).tolist()
assert refused(lambda: random.key(2**63), OverflowError)
draw = jax.jit(lambda key: random.bits(key, (2,)))
with jax.default_prng_impl("rbg"):
    key = random.PRNGKey(12345678901 & (2**32 - 1))
    assert key.shape == (4,) and random.split(key).shape == (2, 4) and draw(key).shape == (2,)
two = random.PRNGKey(0)
with jax.default_prng_impl("philox4x32"):
    other = draw(two).tolist()
assert other != draw(two).tolist()
jax.config.update("jax_default_prng_impl", "rbg")
assert random.key(0).dtype == random.key_dtype("rbg") and jax.config.jax_default_prng_impl == "rbg"
jax.config.update("jax_default_prng_impl", "threefry2x32")
keys = random.split(random.key(0), 3)
assert random.key_data(jnp.full((2,), 7, dtype=keys.dtype)).tolist() == [[7, 7]] * 2
assert (jnp.full_like(keys, keys[1]) == keys[1]).all() and jnp.zeros(shape=(2,)).shape == (2,)
noisy = jax.custom_jvp(lambda x, key: x * random.normal(key))
noisy.defjvp(lambda at, dots: (noisy(*at), dots[0] * random.normal(at[1])))
assert jax.grad(noisy)(1.0, keys[0]) == random.normal(keys[0])
for name in ("rbg", "philox4x32"):
    wide = random.key(1, impl=name)
    noisy = jax.custom_vjp(lambda x, key: x * random.normal(key))
    push = lambda x, key: (noisy(x, key), key)
    noisy.defvjp(push, lambda key, ct: (ct * random.normal(key), None))
    step = lambda state, _: ((random.split(state[0])[0], noisy(state[1], state[0])), None)
    run = lambda x: jax.lax.scan(jax.checkpoint(step), (wide, x), None, 2)[0][1]
    expected = random.normal(wide) * random.normal(random.split(wide)[0])
    assert np.isclose(jax.grad(run)(1.0), expected)
    assert np.isclose(jax.jit(jax.grad(run))(1.0), expected)

# Bits as JAX has them without jax_threefry_partitionable (its values).
with jax.threefry_partitionable(False):
    old, words = random.key(3), [1024511538, 90224275, 2603795180]
    assert random.bits(old, (3,), "uint8").tolist() == [155, 99, 138]
    assert random.bits(old, (3,), "uint32").tolist() == words
    split = [[877192987, 1614509672], [1950127089, 3448417067], [2823528474, 3529024829]]
    assert random.key_data(random.split(old, 3)).tolist() == split
    assert random.permutation(old, 11).tolist() == [6, 0, 8, 5, 4, 1, 2, 7, 3, 9, 10]
    drawn = [2.174755, 3.232742, 1.958019, 2.595816, 2.1538]
    assert np.allclose(random.gamma(old, 2.5, (5,)), drawn, rtol=1e-5)
    draw, two = (lambda key: random.uniform(key, (3,))), random.split(old, 2)
    assert (jax.vmap(draw)(two)[1] == jax.jit(draw)(two[1])).all()
assert random.bits(random.key(3), (3,), "uint32").tolist() != words
assert jax.config.jax_threefry_partitionable is True

# Floats of ml_dtypes are floats.
if importlib.util.find_spec("ml_dtypes"):
    for kind in (jnp.bfloat16, np.dtype("bfloat16"), "bfloat16"):
        assert jnp.issubdtype(kind, jnp.floating) and not jnp.issubdtype(kind, jnp.float32)
        assert jnp.issubdtype(kind, jnp.bfloat16) and not jnp.issubdtype(kind, jnp.integer)
assert jnp.issubdtype(jnp.float32, jnp.floating) and not jnp.issubdtype(jnp.floating, jnp.float32)

# Shapes are what can be gone through. Traced values are no ndarrays, and can be referred to weakly.
shape = type("Shape", (), {"__iter__": lambda self: iter((2, 3))})()
assert random.normal(random.key(0), shape).shape == jnp.zeros(shape).shape == (2, 3)
assert jax.lax.full(shape, 1.0).shape == jnp.reshape(jnp.arange(6), shape).shape == (2, 3)
assert refused(lambda: jax.jit(np.asarray)(1.0), jax.errors.TracerArrayConversionError)
assert jax.jit(lambda x: weakref.ref(x)() + 1)(1.0) == 2.0
assert jax.jit(lambda which, n: jax.lax.select(which, 1, n))(True, 2) == 1
assert jax.device_get({"a": "text", "b": jnp.ones(2)})["a"] == "text" and jnp.shape(None) == ()
assert jax.api_util.safe_map(max, [1, 5], [2, 3]) == [2, 5]
jax.core.pytype_aval_mappings[list] = jax.core.pytype_aval_mappings[np.ndarray]

# Beside floats, integers say nothing about a dtype; quotients of narrow ones are narrow.
with jax.enable_x64(True):
    narrow, wide = jnp.arange(1, 4, dtype="int8"), jnp.arange(3, dtype="int64")
    single = jnp.arange(3, dtype="float32")
    for made in (single * wide, wide + single, jnp.fmod(single, wide), narrow / narrow,
                 jnp.kron(single, wide), jnp.sinc(narrow), jax.jit(jnp.heaviside)(single, wide)):
        assert made.dtype == np.float32
    assert (wide / narrow).dtype == np.float64 == (narrow + 1.5).dtype
    assert jnp.result_type(single, wide) == np.float32
    assert jax.dtypes.result_type(jnp.array(1.0), return_weak_type_flag=True)[1]
with jax.numpy_dtype_promotion("strict"):
    jnp.linspace(narrow[0], narrow[1], 3), jnp.average(narrow, weights=narrow)
    jnp.trapezoid(narrow)
with jax.numpy_rank_promotion("raise"):
    assert refused(lambda: jnp.ones(2) + jnp.ones((1, 2)))
    assert (jnp.ones((2, 2)) @ jnp.ones(2)).tolist() == [2.0, 2.0]

assert jnp.ones((1, 1)).reshape().shape == () == jnp.ones(1).reshape().shape

handed = jax.jvp(lambda x: (x, x + 1), (1.0,), (2.0,))
assert [[type(x) is float for x in part] for part in handed] == [[True, False]] * 2

# Operators refuse containers, and arrays integers that do not fit.
assert refused(lambda: row + [1, 2, 3], TypeError) and refused(lambda: jnp.ndarray((1,)), TypeError)
assert 20.0 in row and 5 not in row and refused(lambda: row in row) and refused(lambda: 1 in row[0])
assert refused(lambda: jnp.array(2**40), OverflowError)
assert refused(lambda: random.randint(key, (2,), 0, 2**40), OverflowError)
assert refused(lambda: random.choice(key, 5, 2), TypeError) and refused(lambda: jnp.ones((-1, 1)))
assert jnp.r_["c", [1, 2], [3]].shape == (3, 1) and jnp.c_["r", [1, 2], [3, 4]].shape == (2, 2)
assert np.isnan(jnp.take(row, jnp.array([1, 7]))).tolist() == [False, True]
assert jnp.take(row, jnp.array([7]), fill_value=-1.0) == -1.0 and jnp.isclose(keys[0], keys[0])
assert refused(lambda: jnp.pad(row, 1, "foo"), NotImplementedError)
assert refused(lambda: jnp.choose(jnp.array([3]), [row, row]))
assert jnp.choose(jnp.array([1, 0]), [row[:2], row[1:]]).tolist() == [20.0, 20.0]
assert [x.shape for x in jax.jit(jnp.ix_)(row, row[:2])] == [(3, 1), (1, 2)]
assert jnp.convolve(jnp.arange(3), jnp.arange(2)).dtype == np.float32
assert jax.lax.map(lambda x: x * 2, row, batch_size=0).tolist() == [20.0, 40.0, 60.0]
assert np.isnan(jnp.var(jnp.arange(2.0), ddof=3))

# Sparse matrices and recurrent networks.
from jax.experimental import rnn
from jax.experimental.sparse import bcoo
matrix = bcoo.BCOO.fromdense(jnp.array([[1.0, 0.0], [2.0, 3.0]]))
dims = (((1,), (0,)), ((), ()))
assert bcoo.bcoo_dot_general(matrix, jnp.ones(2), dimension_numbers=dims).tolist() == [1, 5]
weights = rnn.init_lstm_weight(random.key(0), 2, 3, 2, True)
assert weights.shape == (rnn.get_num_params_in_lstm(2, 3, 2, True),)
state = jnp.zeros((4, 1, 3))
parts = (jnp.ones((1, 5, 2)), state, state, weights, jnp.array([4], jnp.int32), 2, 3, 2, 0.0, True)
y, h, c = jax.jit(rnn.lstm, static_argnums=(5, 6, 7, 8, 9))(*parts)
assert y.shape == (1, 5, 6) and not y[0, 4].any() and h.shape == c.shape == (4, 1, 3)
assert np.allclose(y[0, 3, :3], h[2, 0]) and np.allclose(y[0, 0, 3:], h[3, 0])
twice = rnn.swap_lstm_gates(rnn.swap_lstm_gates(weights, 2, 3, 2, True), 2, 3, 2, True)
assert (twice == weights).all()

# Classes with rules of their own for the axis that is mapped.
from jax.interpreters import batching
pairs = type("Pair", (), {"__init__": lambda self, data: vars(self).update(data=data)})
batching.register_vmappable(
    pairs, int, int, lambda cont, _, x, spec: pairs(cont(x.data, spec)),
    lambda cont, size, x, spec: pairs(cont(size, x.data, spec)), None)
doubled = jax.vmap(lambda x, y: (pairs(x.data * 2), y), (1, None), (1, None))
found = jax.jit(lambda: [x.data if type(x) is pairs else x for x in
                         doubled(pairs(jnp.ones((2, 3))), 1.0)])()
batching.unregister_vmappable(pairs)
assert found[0].shape == (2, 3) and (found[0] == 2).all() and found[1] == 1.0

# Words that are known, also by their names here; what is refused.
assert jax.lax.reduce(row, -np.inf, jax.lax.max, (0,)) == 30.0
both = lambda x, y: {"a": x["a"] + y["a"]}
assert jax.lax.reduce({"a": np.ones(3)}, {"a": 0.0}, both, [0]) == {"a": 3.0}
assert refused(lambda: jax.lax.stop_gradient(max), TypeError)
assert refused(lambda: jax.jit(lambda seed: seed)(2**40), OverflowError)
assert jax.jit(lambda n: n, static_argnums=0)(2**30) == 2**30
assert refused(lambda: jax.scipy.special.sici(1j)) and refused(lambda: jnp.cumulative_sum(1.0))
assert refused(lambda: jnp.tensordot(row, row, axes=2), TypeError)
assert refused(lambda: jax.scipy.sparse.linalg.cg([[1]], row[:1]), TypeError)

# A value that all branches hand on is not mapped; functions with rules take positions.
first, second = lambda x, y: (x + 1, y), lambda x, y: (x, y)
choose = lambda x, y: jax.lax.cond(x < 1, first, second, x, y)
both = jax.vmap(choose, (0, None), (0, None))(jnp.arange(3), row)
assert both[1].tolist() == row.tolist()
kept = lambda x, y: jax.lax.scan(lambda c, _: (c, None), y, None, 2)[0]
choose = lambda x, y: jax.lax.cond(x < 1, kept, kept, x, y)
assert jax.vmap(choose, (0, None), None)(jnp.arange(3.0), jnp.array(2.0)) == 2.0
lost = lambda x: sum(jax.lax.scan(lambda c, _: ((0.0, 0.0), ()), (x, 0.0), (), length=5)[0])
assert lost(jnp.float32(1.0)) == jax.grad(lost)(1.0) == 0.0  # Python's numbers for carried arrays
ruled = jax.custom_jvp(lambda x, *, z=None: x)
ruled.defjvp(lambda at, dots: (at[0], dots[0]))
assert refused(lambda: ruled(1.0, z=2.0), TypeError)

pair = jax.custom_vjp(lambda x: x[0] * x[1])
pair.defvjp(lambda x: (pair(x), x), lambda x, ct: (ct,))  # one cotangent stands for both
assert [float(g) for g in jax.grad(pair)((2.0, 3.0))] == [1.0, 1.0]
pulled = jax.closure_convert(jax.vjp(lambda x, z: z * x, 2.0, 3.0)[1], 2.0)
assert [float(g) for g in pulled[0](2.0, *pulled[1])] == [6.0, 4.0]
lanes = jax.custom_vjp(jax.custom_batching.custom_vmap(lambda x: x))
lanes.def_vmap(lambda size, is_mapped, x: (x + 1, True))
lanes.defvjp(lambda x: (lanes(x), None), lambda _, ct: (ct,))
assert jax.vmap(lanes)(jnp.arange(2.0)).tolist() == [1.0, 2.0]

# Equations.
one = jnp.eye(2)
assert np.isnan(jax.scipy.linalg.solve_sylvester(one, -one, one)).all()
assert np.allclose(jax.scipy.linalg.solve_sylvester(one, one, one), one / 2)
assert jax.scipy.sparse.linalg.cg(lambda x: x, 1.0)[0].weak_type
assert refused(lambda: jax.scipy.sparse.linalg.cg(lambda x: x, row, {"x": row}))
assert refused(lambda: jax.scipy.linalg.helmert(0))
assert jax.scipy.linalg.fiedler_companion(jnp.ones((3, 1))).shape == (3, 0, 0)
assert refused(lambda: jax.scipy.linalg.convolution_matrix(row[0], 3))

# Arrays of parts.
mesh = jax.make_mesh((1,), ("x",))
place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
made = jax.make_array_from_callback((4,), place, lambda index: np.arange(4.0)[index])
assert made.tolist() == [0.0, 1.0, 2.0, 3.0] and made.sharding == place
assert jax.make_array_from_single_device_arrays((4,), place, [made]).tolist() == made.tolist()
assert refused(lambda: jax.make_array_from_single_device_arrays((4,), place, [made] * 2))

# Arrays of NumPy keep their kind in a new shape; folds may return another structure.
kinds = []
jax.jit(lambda: kinds.append(type(jnp.reshape(np.arange(4.0), (2, 2)))))()
assert kinds == [np.ndarray] and type(jnp.reshape(row, (3, 1))) is jax.Array
Pair = collections.namedtuple("Pair", "a b")
found = jax.lax.associative_scan(lambda x, y: (x.a + y.a, x.b * y.b), Pair(row, row))
assert type(found) is Pair and found.a.tolist() == [10.0, 30.0, 60.0]

# What is alive; how many programs a function has; functions of leaves.
alive = [x for x in jax.live_arrays() if x is row]
assert len(alive) == 1 and jax.live_arrays("gpu") == []
twice = jax.jit(lambda x: x * 2)
twice(row), twice(row), twice(row[:2])
assert twice._cache_size() == 2
leaves, tree = jax.tree.flatten(((), {"x": row, "y": 2.0}))
wrapped = jax.extend.linear_util.wrap_init(lambda x, y: {"out": x * y})
flat, structure = jax.api_util.flatten_fun(wrapped, tree)
assert flat.call_wrapped(*leaves)[0].tolist() == [20.0, 40.0, 60.0]
assert structure() == jax.tree.structure({"out": 0})

# Weak numbers remain so in loops whose lanes end one by one; steps need not have results.
@jax.custom_jvp
def scaled(x, d):
    return x * d
scaled.defjvp(lambda xs, ts: (scaled(*xs), ts[0] * xs[1]))
def grown(x):
    step = lambda c: (c[0] + scaled(c[0], c[1]), c[1])
    return jax.lax.while_loop(lambda c: c[0] < 3, step, (x, jnp.where(x > 0, 1, -1)))[0]
with jax.numpy_dtype_promotion("strict"):
    assert jax.vmap(grown)(jnp.array([1.0, 2.0])).tolist() == [4.0, 4.0]
def printed(x):
    jax.debug.callback(lambda: None)
    return x.astype(jnp.float16), x
assert jax.jit(printed)(row)[0].dtype == jnp.float16
"""


def test_conventions():
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=False)
    assert found.returncode == 0, found.stderr.decode()
