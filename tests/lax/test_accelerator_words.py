"""What XLA computes under names of its own: products of groups, transforms, bits, shapes."""

from __future__ import annotations

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import lax
from funcgrad.errors import ArgumentError, DtypeError, ShapeError
from funcgrad.testing import check_grads

RNG = np.random.default_rng(3)


def by_rows(x, w, sizes):
    """Every row times the matrix of its group, zeros behind the last one."""
    out = np.zeros((len(x), w.shape[2]))
    groups = np.repeat(np.arange(len(sizes)), sizes)[: len(x)]
    for row, group in enumerate(groups):
        out[row] = x[row] @ w[group]
    return out


@pytest.mark.parametrize("sizes", [[2, 0, 3, 2], [1, 1, 1, 1], [0, 0, 0, 0], [4, 4, 4, 4]])
def test_ragged_rows(sizes):
    x, w, sizes = RNG.normal(size=(7, 3)), RNG.normal(size=(4, 3, 5)), np.array(sizes)
    expected = by_rows(x, w, sizes)
    np.testing.assert_allclose(lax.ragged_dot(x, w, sizes), expected, atol=1e-14)
    np.testing.assert_allclose(fg.jit(lax.ragged_dot)(x, w, sizes), expected, atol=1e-14)
    mapped = fg.vmap(lax.ragged_dot, (None, None, 0))(x, w, np.stack([sizes, sizes[::-1]]))
    np.testing.assert_allclose(mapped[1], by_rows(x, w, sizes[::-1]), atol=1e-14)
    check_grads(lambda x, w: lax.ragged_dot(x, w, sizes), (x, w), order=2)
    wide = lax.ragged_dot(
        x.astype(np.float32), w.astype(np.float32), sizes, preferred_element_type=np.float64
    )
    assert wide.dtype == np.float64


def test_ragged_axes():
    x, y = RNG.normal(size=(2, 6, 3)), RNG.normal(size=(2, 6, 4))
    sizes = np.array([[2, 3, 1], [1, 1, 1]])
    numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((0,), (0,))), [1], [])
    expected = np.zeros((3, 2, 3, 4))
    for lane in range(2):
        ends = np.cumsum(sizes[lane])
        for group, (end, n) in enumerate(zip(ends, sizes[lane], strict=True)):
            rows = slice(end - n, end)
            expected[group, lane] = x[lane, rows].T @ y[lane, rows]
    found = lax.ragged_dot_general(x, y, sizes, numbers)
    np.testing.assert_allclose(found, expected, atol=1e-14)
    check_grads(lambda x, y: lax.ragged_dot_general(x, y, sizes, numbers), (x, y), order=2)

    w = RNG.normal(size=(3, 2, 3, 4))
    numbers = lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (1,))), [1], [0])
    found = lax.ragged_dot_general(x, w, sizes, numbers)
    expected = [by_rows(x[i], w[:, i], sizes[i]) for i in range(2)]
    np.testing.assert_allclose(found, expected, atol=1e-14)

    numbers = lax.RaggedDotDimensionNumbers((((2,), (1,)), ((0,), (0,))), [0], [])
    v = RNG.normal(size=(2, 3, 4))
    np.testing.assert_allclose(lax.ragged_dot_general(x, v, np.array([1, 1]), numbers), x @ v)

    numbers = lax.RaggedDotDimensionNumbers((((2,), (2,)), ((0,), (1,))), [1], [0])
    with pytest.raises(ShapeError, match=r"group_sizes must have shape \(g,\) or \(2, 'g'\)"):
        lax.ragged_dot_general(x, w, np.ones((3, 3), int), numbers)
    with pytest.raises(DtypeError, match=r"group_sizes must be integers"):
        lax.ragged_dot(x[0], w[:, 0], np.ones(3))
    with pytest.raises(ArgumentError, match=r"group_offset must be None"):
        lax.ragged_dot(x[0], w[:, 0], np.ones(3, int), group_offset=np.array([1]))
    numbers = numbers._replace(rhs_group_dimensions=[])
    with pytest.raises(ShapeError, match=r"rhs has one axis of groups where a free axis"):
        lax.ragged_dot_general(x, w, sizes, numbers)


@pytest.mark.parametrize("lengths", [(5,), (4, 5), (3, 4, 5)])
def test_fft(lengths):
    z = RNG.normal(size=(3, 4, 5)) + 1j * RNG.normal(size=(3, 4, 5))
    axes = range(3 - len(lengths), 3)
    back = (*lengths[:-1], 8)
    for kind, x, given, expected in (
        ("fft", z, lengths, np.fft.fftn(z, axes=axes)),
        (lax.FftType.IFFT, z, lengths, np.fft.ifftn(z, axes=axes)),
        ("RFFT", z.real, lengths, np.fft.rfftn(z.real, axes=axes)),
        (lax.FftType.IRFFT, z, back, np.fft.irfftn(z, s=back, axes=axes)),
    ):
        np.testing.assert_allclose(lax.fft(x, kind, given), expected, atol=1e-13)
        both = fg.vmap(lambda v, k=kind, n=given: lax.fft(v, k, n))(np.stack([x, -x]))
        np.testing.assert_allclose(both[1], -expected, atol=1e-13)
    check_grads(lambda x: abs(lax.fft(x, "rfft", lengths)) ** 2, (z.real,), order=2)


def test_fft_refused():
    with pytest.raises(ShapeError, match=r"must have lengths \(5,\) for FFT with fft"):
        lax.fft(np.ones(4), "fft", (5,))
    with pytest.raises(ArgumentError, match=r"one of FFT, IFFT, RFFT, IRFFT, got 'dct'"):
        lax.fft(np.ones(4), "dct", (4,))


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_upper_halves_of_products(dtype):
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.max, 0, 1], dtype)
    x = np.concatenate([RNG.integers(info.min, info.max, 20, dtype, endpoint=True), ends])
    y = x[::-1].copy()
    expected = [int(a) * int(b) >> info.bits for a, b in zip(x, y, strict=True)]
    found = lax.mulhi(x, y)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, np.array(expected, object).astype(dtype))
    with pytest.raises(DtypeError, match="needs a dtype of kind"):
        lax.mulhi(1.0, 2.0)


def nearest(x, exponent, mantissa):
    """``x`` in a format of so many bits, by exact arithmetic."""
    if not np.isfinite(x) or x == 0:
        return x
    bias = 2 ** (exponent - 1) - 1
    fraction, power = np.frexp(np.float64(x))
    rounded = np.ldexp(np.rint(np.ldexp(fraction, mantissa + 1)), int(power) - mantissa - 1)
    if abs(rounded) >= 2.0 ** (bias + 1):
        return np.copysign(np.inf, x)
    return rounded if abs(rounded) >= 2.0 ** (1 - bias) else np.copysign(0.0, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reduced_precision(dtype):
    x = RNG.normal(size=200) * 10.0 ** RNG.integers(-9, 9, 200)
    x = np.concatenate([x, [0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519, 65520, 6e-8]])
    x = x.astype(dtype)
    for bits in ((8, 7), (5, 10), (4, 3), (2, 1), (1, 0), (8, 0)):
        expected = np.array([nearest(v, *bits) for v in x], dtype)
        found = lax.reduce_precision(x, *bits)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    np.testing.assert_array_equal(lax.reduce_precision(x, 11, 52), x)
    half = np.array([nearest(v, 5, 10) for v in x], dtype)
    np.testing.assert_array_equal(fg.jit(lambda x: lax.reduce_precision(x, 5, 10))(x), half)
    slope = fg.grad(lambda x: lax.reduce_precision(3 * x * x, 8, 7))
    assert slope(1.003) == 6 * 1.003
    assert fg.grad(slope)(1.003) == 6.0
    assert fg.jvp(lambda x: lax.reduce_precision(x, 8, 2), (1.0,), (1.3,))[1] == 1.25
    with pytest.raises(ArgumentError, match="at least 1 bit of exponent"):
        lax.reduce_precision(x, 0, 2)


def test_random_bits():
    """The first words of a state of the key 1 and the counter 2, as XLA's Threefry gives them."""
    words = [43444564, 2150618427, 3979645651, 3745730563]
    state = np.array([1, 2], np.uint64)
    of_threefry = {"algorithm": lax.RandomAlgorithm.RNG_THREE_FRY}
    for n in range(5):
        after, bits = lax.rng_bit_generator(state, (n,), **of_threefry)
        np.testing.assert_array_equal(bits, words[:n])
        assert after.tolist() == [1, 2 + -(-n // 2)]
    wide = fg.jit(lambda s: lax.rng_bit_generator(s, (2, 1), np.uint64, **of_threefry))
    after, bits = wide(state)
    assert after.tolist() == [1, 4]
    assert bits.tolist() == [[words[1] << 32 | words[0]], [words[3] << 32 | words[2]]]
    after, bits = lax.rng_bit_generator(state.view(np.uint32), (4,), np.uint8, **of_threefry)
    assert after.tolist() == [1, 0, 4, 0]
    np.testing.assert_array_equal(bits, np.array(words).astype(np.uint8))
    # Philox, where the upper half of the counter is the key, which a carry reaches.
    words = [2100602697, 2847456232, 2074354647, 800269529, 1828267006]
    after, bits = lax.rng_bit_generator(state, (5,))
    assert (after.tolist(), bits.tolist()) == ([1, 4], words)
    after, bits = fg.jit(lambda s: lax.rng_bit_generator(s, (2,), np.uint64))(state)
    assert (after.tolist(), bits.tolist()) == (
        [1, 3],
        [words[1] << 32 | words[0], words[3] << 32 | words[2]],
    )
    after, bits = lax.rng_bit_generator(np.array([0x123456789ABCDEF1, 2**64 - 1], np.uint64), (7,))
    assert (int(after[1]), int(bits[-1])) == (1, 3668958972)
    with pytest.raises(DtypeError, match="unsigned"):
        lax.rng_bit_generator(state, (2,), np.int32)
    with pytest.raises(ShapeError, match=r"got u32\[2\]"):
        lax.rng_bit_generator(fg.random.PRNGKey(0), (2,))


@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", [(1, 2), (0, 1)]])
def test_shapes_of_windows(padding, strides):
    layout = ("NHWC", "HWIO", "NWCH")
    x, w = np.ones((2, 9, 8, 3)), np.ones((3, 4, 3, 6))
    found = lax.conv_general_shape_tuple(x.shape, w.shape, strides, padding, layout)
    shape = lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=layout).shape
    assert found == shape
    canonical = lax.conv_shape_tuple((2, 3, 9, 8), (6, 3, 3, 4), strides, padding)
    assert canonical == tuple(shape[i] for i in (0, 2, 3, 1))
    found = lax.conv_transpose_shape_tuple(x.shape, w.shape, strides, padding, layout)
    assert found == lax.conv_transpose(x, w, strides, padding, dimension_numbers=layout).shape
    if not isinstance(padding, str):
        image = x[0, :, :, 0]
        windows = ((3, 2), strides, padding, (2, 1), (1, 3))
        found = lax.reduce_window_shape_tuple(image.shape, *windows)
        assert found == lax.reduce_window(image, 0.0, lax.add, *windows).shape


def test_names_of_axes():
    axes = lax.conv_general_permutations(("NHWC", "WHIO", "WNHC"))
    assert axes == ((0, 3, 2, 1), (3, 2, 0, 1), (1, 3, 0, 2))
    with pytest.raises(ArgumentError, match="must be pairs"):
        lax.reduce_window_shape_tuple((3,), (2,), (1,), "SAME")


def test_composites():
    @lambda f: lax.composite(f, "my.scaled", version=1)
    def scaled(x, *, by):
        return x * by

    assert scaled.__name__ == "scaled"
    assert fg.grad(lambda x: scaled(x, by=3.0) ** 2)(2.0) == 36.0
    with pytest.raises(ArgumentError, match=r"'my.scaled'\): the keyword argument by is a traced"):
        fg.grad(lambda x: scaled(2.0, by=x))(1.0)


def test_arguments_by_name():
    assert lax.zeta(x=2.0, q=1.0) == lax.zeta(2.0, 1.0)
    assert lax.betainc(1.0, x=0.5, b=2.0) == lax.betainc(1.0, 2.0, 0.5)
    with pytest.raises(TypeError, match="missing a required argument: 'q'"):
        lax.zeta(x=2.0)
    assert lax.nextafter(x1=1.0, x2=2.0) > 1.0
    product = lax.mul(np.int8(100), np.int8(100), out_dtype=np.int32)
    assert (product.dtype, product) == (np.int32, 10000)
    np.testing.assert_array_equal(lax.broadcast_like(np.arange(2), np.ones((3, 2))), [[0, 1]] * 3)
    assert lax.shape_as_value((2, 3)).tolist() == [2, 3]


PLACED = {
    "lax.broadcast": lambda f, at: f(np.ones(2), (3,), out_sharding=at),
    "lax.dot": lambda f, at: f(np.ones(2), np.ones(2), out_sharding=at),
    "lax.full": lambda f, at: f((2,), 1.0, sharding=at),
    "lax.reduce_sum": lambda f, at: f(np.ones(2), (0,), out_sharding=at),
    "numpy.matmul": lambda f, at: f(np.ones((2, 2)), np.ones((2, 2)), out_sharding=at),
    "numpy.repeat": lambda f, at: f(np.ones(2), 2, out_sharding=at),
    "nn.initializers.zeros": lambda f, at: f(fg.random.key(0), (2,), out_sharding=at),
}


@pytest.mark.parametrize("name", PLACED)
def test_one_device(name):
    function = fg
    for part in name.split("."):
        function = getattr(function, part)
    np.testing.assert_array_equal(PLACED[name](function, "cpu"), PLACED[name](function, None))
    with pytest.raises(ArgumentError, match=r"there is one device, the CPU.*sharding='gpu:1'"):
        PLACED[name](function, "gpu:1")


def test_names_of_accuracies_and_algorithms_change_nothing():
    x = np.array([0.5, 2.0])
    for accuracy in (lax.AccuracyMode.HIGHEST, lax.Tolerance(atol=1e-3), None):
        for name in ("exp", "log1p", "tanh", "cbrt", "logistic"):
            function = getattr(lax, name)
            np.testing.assert_array_equal(function(x, accuracy=accuracy), function(x))
    algorithm = lax.DotAlgorithm(np.float32, np.float32, np.float32)
    for precision in (lax.DotAlgorithmPreset.BF16_BF16_F32, algorithm):
        np.testing.assert_array_equal(lax.dot(x, x, precision=precision), 4.25)
    assert lax.after_all(lax.create_token(), lax.create_token(0)).shape == (0,)
    for implementation in lax.linalg.EighImplementation:
        values = lax.linalg.eigh(np.diag(x), implementation=implementation)[1]
        np.testing.assert_array_equal(values, x)


def test_blocks_of_operands_have_scales_of_their_own():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3, 8)), rng.normal(size=(2, 5, 8))
    p, q = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 5, 4))
    expected = np.einsum("bmk,bnk->bmn", x * np.repeat(p, 4, -1), y * np.repeat(q, 2, -1))
    found = fg.nn.scaled_matmul(x, y, p, q, np.float64)
    np.testing.assert_allclose(found, expected, 1e-13)
    narrow = fg.nn.scaled_matmul(x, y.astype(np.float32), p, q)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, expected, 1e-4, 1e-4)
    found = lax.scaled_dot(x, y.swapaxes(1, 2), rhs_scale=q.swapaxes(1, 2))
    np.testing.assert_allclose(found, np.einsum("bmk,bnk->bmn", x, y * np.repeat(q, 2, -1)), 1e-13)
    check_grads(lambda *xs: fg.nn.scaled_matmul(*xs, np.float64), (x, y, p, q), order=1)
    with pytest.raises(ShapeError, match="lhs_scale"):
        fg.nn.scaled_matmul(x, y, p[..., :1].repeat(3, -1), q)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_polar_factors(dtype):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2, 5, 3)).astype(dtype)
    if dtype is np.complex128:
        x += 1j * rng.normal(size=x.shape)
    u, h, iterations, has_converged = lax.linalg.qdwh(x)
    assert (int(iterations), bool(has_converged)) == (0, True)
    np.testing.assert_allclose(u @ h, x, 1e-13, 1e-13)
    np.testing.assert_allclose(u.conj().swapaxes(1, 2) @ u, np.stack([np.eye(3)] * 2), atol=1e-13)
    assert np.linalg.eigvalsh(h).min() > 0
    padded = np.zeros((6, 4), dtype)
    padded[:5, :3] = x[0]
    found = lax.linalg.qdwh(padded, dynamic_shape=(5, 3))
    np.testing.assert_allclose(found[0][:5, :3], u[0], 1e-12, 1e-12)
    np.testing.assert_allclose(found[1][:3, :3], h[0], 1e-12, 1e-12)
    assert not found[0][5:].any()
    assert not found[1][3:].any()
    with pytest.raises(ShapeError, match="m >= n"):
        lax.linalg.qdwh(x[0].T)
