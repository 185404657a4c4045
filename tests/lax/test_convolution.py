"""Convolutions against sums in Python and SciPy; where JAX and PyTorch are there, against them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

import funcgrad as fg
from funcgrad import errors, lax
from tests.lax.agreement import check

WRAPS = [lambda f: f, fg.jit]


def convolved(
    x: np.ndarray,
    y: np.ndarray,
    strides: Any,
    pads: Any,
    base: Any,
    dilation: Any,
    groups: int = 1,
    batches: int = 1,
) -> np.ndarray:
    """The definition, of batch and channels first, element by element."""
    n, _, *lengths = x.shape
    o, i, *taps = y.shape
    windows = [
        max(0, (low + max((m - 1) * b + 1, 0) + high - (k - 1) * d - 1) // s + 1)
        for m, k, s, (low, high), b, d in zip(
            lengths, taps, strides, pads, base, dilation, strict=True
        )
    ]
    out = np.zeros(
        (n // batches, o, *windows),
        np.result_type(x, np.int64) if x.dtype.kind in "iu" else x.dtype,
    )
    for b, q, *place in itertools.product(*map(range, out.shape)):
        group = q // (o // (groups * batches))
        for channel, *tap in itertools.product(range(i), *map(range, taps)):
            at = [
                w * s + k * d - low
                for w, s, k, d, (low, _) in zip(place, strides, tap, dilation, pads, strict=True)
            ]
            if all(
                a % g == 0 and 0 <= a < m * g for a, g, m in zip(at, base, lengths, strict=True)
            ):
                row = b + (n // batches) * group if batches > 1 else b
                of = channel + i * group if groups > 1 else channel
                element = tuple(a // g for a, g in zip(at, base, strict=True))
                out[(b, q, *place)] += x[(row, of, *element)] * y[(q, channel, *tap)]
    return out.astype(x.dtype)


@st.composite
def convolutions(draw: Any) -> dict[str, Any]:
    rank = draw(st.integers(0, 2))
    groups, batches = draw(st.sampled_from([(1, 1), (2, 1), (1, 2)]))

    def each(low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(rank)]

    def spec() -> tuple[int, ...]:
        return tuple(draw(st.permutations(range(rank + 2))))

    return {
        "shape": (draw(st.integers(1, 2)) * batches, draw(st.integers(1, 2)) * groups, *each(1, 5)),
        "outputs": draw(st.integers(1, 2)) * groups * batches,
        "taps": each(1, 3),
        "strides": each(1, 3),
        "pads": [(draw(st.integers(-1, 3)), draw(st.integers(0, 3))) for _ in range(rank)],
        "base": each(1, 3),
        "dilation": each(1, 2),
        "groups": groups,
        "batches": batches,
        "specs": (spec(), spec(), spec()),
    }


def placed(x: np.ndarray, spec: Any) -> np.ndarray:
    """An array of batch and channels first, with axis ``i`` at ``spec[i]``."""
    return np.ascontiguousarray(np.transpose(x, np.argsort(spec)))


@given(convolutions(), st.booleans())
def test_by_definition(case: dict[str, Any], is_jitted: bool) -> None:
    """The sums themselves, and derivatives, which are bilinear in a cotangent and two tangents."""
    rng = np.random.default_rng(0)
    groups, batches = case["groups"], case["batches"]
    x = rng.normal(size=case["shape"])
    y = rng.normal(size=(case["outputs"], case["shape"][1] // groups, *case["taps"]))
    options = [case[name] for name in ("strides", "pads", "base", "dilation")]
    expected = convolved(x, y, *options, groups, batches)
    specs = lax.ConvDimensionNumbers(*case["specs"])
    wrap = WRAPS[is_jitted]

    def ours(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated(
            x,
            y,
            *options,
            dimension_numbers=specs,
            feature_group_count=groups,
            batch_group_count=batches,
        )

    args = placed(x, specs.lhs_spec), placed(y, specs.rhs_spec)
    found = wrap(ours)(*args)
    np.testing.assert_allclose(found, placed(expected, specs.out_spec), 1e-12, 1e-12)
    ct = rng.normal(size=found.shape)
    pulled = wrap(lambda x, y, ct: fg.vjp(ours, x, y)[1](ct))(*args, ct)
    for arg, cotangent in zip(args, pulled, strict=True):
        np.testing.assert_allclose(np.sum(arg * cotangent), np.sum(found * ct), 1e-10, 1e-10)
    tx, ty = rng.normal(size=args[0].shape), rng.normal(size=args[1].shape)
    dot = wrap(lambda x, y, *t: fg.jvp(ours, (x, y), t)[1])(*args, tx, ty)
    np.testing.assert_allclose(np.sum(pulled[0] * tx) + np.sum(pulled[1] * ty), np.sum(dot * ct))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D", "i4", "u1"])
def test_dtypes(wrap: Any, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = ((4 * rng.normal(size=s)).astype(dtype) for s in ((2, 3, 9, 8), (4, 3, 3, 2)))
    if dtype in "FD":
        x = x * (1 + 2j)
    found = wrap(lambda x, y: lax.conv(x, y, (1, 1), [(1, 1), (0, 2)]))(x, y)
    with np.errstate(over="ignore"):
        expected = convolved(x, y, (1, 1), [(1, 1), (0, 2)], (1, 1), (1, 1))
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(
        found, expected, *((1e-4, 1e-4) if dtype in "fF" else (1e-12, 1e-12))
    )


@pytest.mark.parametrize("wrap", WRAPS)
def test_images_agree_with_scipy(wrap: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 31)), rng.normal(size=(5, 4))
    found = wrap(lambda x, y: lax.conv(x[None, None], y[None, None], (1, 1), "VALID"))(x, y)
    np.testing.assert_allclose(found[0, 0], signal.correlate2d(x, y, "valid"), 1e-10, 1e-12)


# Shapes for which kernels choose other columns, copy an operand or walk over phases.
LARGE: dict[str, tuple[Any, ...]] = {
    "channels first": ((4, 3, 20, 21), (18, 3, 3, 4), ("NCHW", "OIHW", "NCHW"), 1, 1, 1),
    "channels last": ((4, 20, 21, 3), (3, 4, 3, 18), ("NHWC", "HWIO", "NHWC"), 1, 1, 1),
    "batch last": ((3, 20, 21, 7), (3, 3, 4, 18), ("CHWN", "IHWO", "CHWN"), 1, 1, 1),
    "strides": ((2, 5, 20, 21), (40, 5, 3, 4), ("NCHW", "OIHW", "NCHW"), 2, 1, 1),
    "spread": ((2, 5, 20, 21), (40, 5, 3, 4), ("NCHW", "OIHW", "NCHW"), 1, 2, 1),
    "dilated": ((2, 5, 20, 21), (9, 5, 3, 4), ("NCHW", "OIHW", "NCHW"), 1, 1, 3),
    "points": ((3, 9, 20, 21), (17, 9, 1, 1), ("NCHW", "OIHW", "NCHW"), 1, 1, 1),
    "points last": ((3, 20, 21, 9), (1, 1, 9, 17), ("NHWC", "HWIO", "NHWC"), 1, 1, 1),
    "one channel": ((9, 1, 28, 28), (6, 1, 5, 5), ("NCHW", "OIHW", "NCHW"), 1, 1, 1),
    "one window": ((9, 3, 8, 8), (70, 3, 8, 8), ("NCHW", "OIHW", "NCHW"), 1, 1, 1),
    "patches": ((3, 16, 16, 3), (4, 4, 3, 50), ("NHWC", "HWIO", "NHWC"), 4, 1, 1),
    "many terms": ((2, 90, 9, 9), (13, 90, 3, 3), ("NCHW", "OIHW", "NCHW"), 1, 1, 1),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", LARGE)
def test_compiled_is_eager(name: str, dtype: str) -> None:
    """Forward and backward; eager evaluation is checked by the definition above."""
    x_shape, y_shape, numbers, stride, base, dilation = LARGE[name]
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=s).astype(dtype) for s in (x_shape, y_shape))

    def f(x: Any, y: Any) -> Any:
        pads = [(1, 0), (0, 2)] if name != "one window" else [(0, 0)] * 2
        return lax.conv_general_dilated(
            x, y, (stride,) * 2, pads, (base,) * 2, (dilation,) * 2, numbers
        )

    ct = np.cos(f(x, y))
    rtol = 2e-4 if dtype == "f" else 1e-10
    for g in (f, lambda x, y: fg.vjp(f, x, y)[1](ct)):
        for found, expected in zip(fg.jit(g)(x, y), g(x, y), strict=True):
            scale = np.max(np.abs(expected))
            np.testing.assert_allclose(found, expected, rtol, rtol * scale)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize(("of_x", "of_y"), [(0, None), (None, 1), (1, 0)])
def test_maps(wrap: Any, of_x: Any, of_y: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3, 3, 2, 6)), rng.normal(size=(3, 3, 2, 3))
    x = x if of_x is not None else x[0]
    y = y if of_y is not None else y[0]

    def f(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated(x, y, (2,), "SAME")

    def loss(x: Any, y: Any) -> Any:
        return np.sum(np.sin(f(x, y)))

    def lane(z: Any, axis: Any, i: int) -> Any:
        return z if axis is None else np.take(z, i, axis)

    for g in (f, fg.grad(loss), fg.grad(loss, 1)):
        found = wrap(fg.vmap(g, (of_x, of_y)))(x, y)
        expected = [g(lane(x, of_x, i), lane(y, of_y, i)) for i in range(3)]
        np.testing.assert_allclose(found, expected, 1e-12, 1e-12)


def test_transformations_agree_with_the_definition() -> None:
    rng = np.random.default_rng(0)
    check(
        lambda x, y: lax.conv_general_dilated(x, y, (2,), [(1, 2)], rhs_dilation=(2,)),
        lambda x, y: convolved(x, y, (2,), [(1, 2)], (1,), (2,)),
        rng.normal(size=(2, 2, 5)),
        rng.normal(size=(3, 2, 2)),
        rtol=1e-9,
    )


@pytest.mark.parametrize("wrap", WRAPS)
def test_third_derivatives(wrap: Any) -> None:
    """Of a sum of cubes, along a line: a polynomial, whose coefficients are known."""
    rng = np.random.default_rng(0)
    x, y, t = rng.normal(size=(1, 2, 5)), rng.normal(size=(2, 2, 3)), rng.normal(size=(1, 2, 5))

    def along(a: Any) -> Any:
        return np.sum(lax.conv(x + a * t, y, (1,), "SAME") ** 3)

    of_t = convolved(t, y, (1,), [(1, 1)], (1,), (1,))
    third = wrap(fg.grad(fg.grad(fg.grad(along))))(0.3)
    np.testing.assert_allclose(third, 6 * np.sum(of_t**3), 1e-9)


@pytest.mark.parametrize("padding", ["SAME", "VALID", "SAME_LOWER", "same"])
def test_names_of_padding(padding: str) -> None:
    """As many windows as the names promise, the odd element of padding where they say."""
    x, y = np.arange(1.0, 8).reshape(1, 1, 7), np.array([1.0, 10.0]).reshape(1, 1, 2)
    found = lax.conv(x, y, (1,), padding)[0, 0]
    inner = x[0, 0, :-1] + 10 * x[0, 0, 1:]
    expected = {"SAME": [*inner, 7.0], "VALID": inner, "SAME_LOWER": [10.0, *inner]}
    np.testing.assert_array_equal(found, expected[padding.upper()])


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("taps", [1, 2, 3, 4])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_transposed(stride: int, taps: int, padding: str) -> None:
    """With a reversed kernel it is what pulls cotangents back through the convolution."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(taps, 3, 2))
    long = 5 * stride if padding == "SAME" else 4 * stride + max(taps, stride)
    numbers = ("NHC", "HIO", "NHC")
    x = rng.normal(size=(2, long, 3))
    pads = lax.padtype_to_pads((long,), (taps,), (stride,), padding)
    out, pull = fg.vjp(
        lambda x: lax.conv_general_dilated(x, y, (stride,), pads, None, None, numbers), x
    )
    ct = rng.normal(size=out.shape)
    spread = lax.conv_transpose(ct, y, (stride,), padding, transpose_kernel=True)
    np.testing.assert_allclose(spread, pull(ct)[0], 1e-12, 1e-12)
    explicit = lax.conv_transpose(
        ct, y, (stride,), [(1, 1)], transpose_kernel=True, use_consistent_padding=True
    )
    assert explicit.shape[1] == max((out.shape[1] - 1) * stride + taps - 2, 0)


def test_patches_times_a_kernel_are_the_convolution() -> None:
    rng = np.random.default_rng(0)
    numbers = ("NHWC", "HWIO", "NHWC")
    x, y = rng.normal(size=(2, 6, 7, 3)), rng.normal(size=(2, 3, 3, 4))
    options: Any = ((2, 1), [(1, 0), (1, 1)], (1, 1), (1, 2), numbers)
    patches = lax.conv_general_dilated_patches(x, (2, 3), *options)
    found = patches @ y.transpose(2, 0, 1, 3).reshape(18, 4)
    np.testing.assert_allclose(found, lax.conv_general_dilated(x, y, *options), 1e-12, 1e-12)
    kernels = np.broadcast_to(
        y.transpose(2, 0, 1, 3).reshape(1, 1, 18, 4), (*patches.shape[1:3], 18, 4)
    )
    local = lax.conv_general_dilated_local(x, kernels, options[0], options[1], (2, 3), *options[2:])
    np.testing.assert_allclose(local, found, 1e-12, 1e-12)


X, Y = np.ones((2, 4, 5)), np.ones((6, 4, 3))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: lax.conv(X, Y[:, :3], (1,), "SAME"),
            errors.ShapeError,
            r"f64\[2,4,5\] has 4 channels \(axis 1\), but the kernel f64\[6,3,3\] takes 3 ",
        ),
        (
            lambda: lax.conv(X, Y[0], (1,), "SAME"),
            errors.ShapeError,
            "equally many axes, at least two",
        ),
        (
            lambda: lax.conv(X, Y, (1, 1), "SAME"),
            errors.ArgumentError,
            "window_strides must be 1 integers of at least 1",
        ),
        (lambda: lax.conv(X, Y, (0,), "SAME"), errors.ArgumentError, r"got \(0,\)"),
        (
            lambda: lax.conv(X, Y, (1,), "FULL"),
            errors.ArgumentError,
            "'FULL' is not known: use 'SAME'",
        ),
        (lambda: lax.conv(X, Y, (1,), [1]), errors.ArgumentError, r"1 pairs \(low, high\)"),
        (
            lambda: lax.conv(X, Y, (1,), [(-3, -3)]),
            errors.ShapeError,
            "takes more than the 5 elements that there are along axis 0",
        ),
        (
            lambda: lax.conv(X, Y.astype("f"), (1,), "SAME"),
            errors.DtypeError,
            "needs arguments of one dtype",
        ),
        (
            lambda: lax.conv(X, Y[..., :0], (1,), "SAME"),
            errors.ShapeError,
            "windows without elements",
        ),
        (
            lambda: lax.conv_general_dilated(X, Y, (1,), "SAME", (2,)),
            errors.ArgumentError,
            "use lax.conv_transpose",
        ),
        (
            lambda: lax.conv_general_dilated(X, Y, (1,), "SAME", feature_group_count=4),
            errors.ShapeError,
            "in each of 4 groups",
        ),
        (
            lambda: lax.conv_general_dilated(X, Y, (1,), "SAME", batch_group_count=4),
            errors.ShapeError,
            r"must divide the 6 output channels of f64\[6,4,3\] and the batch of 2",
        ),
        (
            lambda: lax.conv_general_dilated(X, Y, (1,), "SAME", feature_group_count=0),
            errors.ArgumentError,
            "at least 1, and not both more",
        ),
        (
            lambda: lax.conv_general_dilated(
                X, Y, (1,), "SAME", dimension_numbers=("NCH", "OIW", "NCH")
            ),
            errors.ArgumentError,
            "'NCH' must have the letters N, C, W",
        ),
        (
            lambda: lax.conv_general_dilated(X, Y, (1,), "SAME", dimension_numbers=("NCH",)),
            errors.ArgumentError,
            "three strings such as",
        ),
        (
            lambda: lax.conv_transpose(X, Y, (1,), "SAME_LOWER"),
            errors.ArgumentError,
            "must be 'SAME', 'VALID'",
        ),
        (
            lambda: lax.conv_general_dilated_patches(X, (3, 3), (1,), "SAME"),
            errors.ArgumentError,
            "filter_shape must be 1 integers",
        ),
    ],
)
def test_errors_say_what_does_not_fit(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_kernel_that_does_not_fit_has_no_windows(wrap: Any) -> None:
    x, y = np.ones((2, 4, 2)), np.ones((6, 4, 3))
    assert wrap(lambda x, y: lax.conv(x, y, (1,), "VALID"))(x, y).shape == (2, 6, 0)
    gx, gy = wrap(fg.grad(lambda x, y: np.sum(lax.conv(x, y, (1,), "VALID")), (0, 1)))(x, y)
    assert not gx.any()
    assert not gy.any()


@pytest.mark.parametrize("seed", range(8))
def test_peers_agree(seed: int) -> None:
    """JAX and PyTorch, where they are installed, compute the same."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    stride, pad, dilation, groups = (int(rng.integers(1, n)) for n in (4, 3, 3, 3))
    x = rng.normal(size=(2, 2 * groups, 9, 10))
    y = rng.normal(size=(3 * groups, 2, 3, 2))
    found, pull = fg.vjp(
        lambda x, y: lax.conv_general_dilated(
            x, y, (stride,) * 2, [(pad, pad)] * 2, None, (dilation,) * 2, feature_group_count=groups
        ),
        x,
        y,
    )
    theirs = [torch.tensor(z, requires_grad=True) for z in (x, y)]
    out = torch.nn.functional.conv2d(*theirs, None, stride, pad, dilation, groups)
    np.testing.assert_allclose(found, out.detach().numpy(), 1e-10, 1e-12)
    pulled = torch.autograd.grad(out.sin().sum(), theirs)
    for a, b in zip(pull(np.cos(found)), pulled, strict=True):
        np.testing.assert_allclose(a, b.numpy(), 1e-9, 1e-11)
