"""Programs at points at which they have no derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad import nn
from tests.linting.programs import RNG, W, X, Y, case


@case("kink")
def huber_at_delta() -> Any:
    def f(w: Any) -> Any:
        r = np.abs(w)  # here
        return np.sum(np.minimum(r, 1.0) ** 2) + np.sum(w) + np.sum(r)

    return f, (np.array([0.0, 0.3, 2.0]),)


@case("kink")
def relu_dead_init() -> Any:
    def f(w: Any, b: Any) -> Any:
        h = np.maximum(X @ w + b, 0)  # here
        return np.sum(h**1)

    return f, (np.zeros((4, 3)), np.zeros(3))


@case("kink")
def maxpool_ties() -> Any:
    img = np.repeat(np.repeat(RNG.normal(size=(1, 4, 4, 1)), 2, 1), 2, 2)

    def f(im: Any, k: Any) -> Any:
        return np.sum(nn.max_pool(im, (2, 2), strides=(2, 2)) * k)  # here

    return f, (img, 1.5)


@case("kink")
def sort_ties_trimmed_mean() -> Any:
    def f(x: Any) -> Any:
        s = np.sort(x)[2:-2]  # here
        return np.sum(s * np.arange(s.size))

    return f, (np.array([1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 0.5, 9.0, 8.0, 7.0]),)


@case("kink")
def median_ties() -> Any:
    def f(x: Any) -> Any:
        return np.median(x)  # here

    return f, (np.array([1.0, 2.0, 2.0, 3.0, 0.0]),)


@case("kink", "singular-derivative")
def eigh_equal() -> Any:
    def f(a: Any) -> Any:
        s = a @ a.T
        w, v = np.linalg.eigh(s)  # here
        return np.sum(w * np.arange(3)) + v[0, 0]

    return f, (np.eye(3),)


@case("kink", "singular-derivative", "lost-digits")
def svd_rank_one() -> Any:
    def f(m: Any) -> Any:
        u, s, vt = np.linalg.svd(m)  # here
        return np.sum(u @ vt) + np.sum(s)

    return f, (np.outer([1.0, 2, 3], [1.0, -1, 2]),)


@case("kink", "singular-derivative")
def nuclear_norm() -> Any:
    def f(m: Any) -> Any:
        return np.linalg.norm(m, "nuc")  # here

    return f, (np.outer([1.0, 2, 3], [1.0, -1, 2]),)


@case("singular-derivative", "kink", "lost-digits")
def qr_deficient() -> Any:
    def f(m: Any) -> Any:
        q, r = np.linalg.qr(m)  # here
        return np.sum(r) + np.sum(q)

    return f, (np.outer([1.0, 2, 3], [1.0, -1]) @ np.eye(2),)


@case("singular-derivative", "kink")
def arctan2_origin() -> Any:
    class Polar:
        def angle(self, p: Any) -> Any:
            return np.arctan2(p[..., 1], p[..., 0])  # here

    def f(p: Any) -> Any:
        return np.sum(Polar().angle(p))

    return f, (np.array([[0.0, 0.0], [1.0, 1.0]]),)


@case("singular-derivative", "kink")
def hypot_origin() -> Any:
    def f(p: Any) -> Any:
        return np.sum(np.hypot(p[:, 0], p[:, 1]))  # here

    return f, (np.array([[0.0, 0.0], [1.0, 1.0]]),)


@case("singular-derivative")
def arccos_clip() -> Any:
    def f(u: Any, v: Any) -> Any:
        c = np.dot(u, v) / np.linalg.norm(u) / np.linalg.norm(v)
        return np.arccos(np.clip(c, -1, 1))  # here

    return f, (np.array([1.0, 0, 0]), np.array([1.0, 0, 0]))


@case("singular-derivative")
def arcsin_one() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.arcsin(x))  # here

    return f, (np.array([1.0, 0.5]),)


@case("singular-derivative")
def power_below_one() -> Any:
    def f(x: Any) -> Any:
        return np.sum(x**0.3)  # here

    return f, (np.array([0.0, 0.5]),)


@case("kink", "singular-derivative")
def mod_one() -> Any:
    def f(t: Any) -> Any:
        return np.sum(np.sin(2 * np.pi * (t % 1.0)) + (t % 1.0))  # here

    return f, (np.array([3.0, 0.25]),)


@case("kink", "singular-derivative")
def floor_divide_edge() -> Any:
    def f(t: Any) -> Any:
        return np.sum(t * (t // 1.0))  # here

    return f, (np.array([3.0, 0.25]),)


@case("kink")
def segment_max_ties() -> Any:
    def f(x: Any) -> Any:
        largest = fg.ops.segment_max(x, np.array([0, 0, 1, 1]), 2)  # here
        return np.sum(largest * np.array([1.0, 3.0]))

    return f, (np.array([1.0, 1.0, 2.0, 3.0]),)


@case("kink")
def cummax_ties() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.maximum.accumulate(x) * np.arange(5))  # here

    return f, (np.array([1.0, 2.0, 2.0, 3.0, 1.0]),)


@case("singular-derivative", "kink")
def norm_of_residual_zero() -> Any:
    def f(a: Any, b: Any) -> Any:
        return np.sum(np.linalg.norm(a - b, axis=1))  # here

    a = RNG.normal(size=(5, 3))
    b = a.copy()
    b[1:] += 1
    return f, (a, b)


@case("singular-derivative", "kink")
def std_of_constant() -> Any:
    def f(x: Any, s: Any) -> Any:
        return np.sum(x.std(axis=1) * s)  # here

    return f, (np.array([[1.0, 1, 1], [1, 2, 3]]), 2.0)


@case("singular-derivative")
def logsumexp_inf_sqrt_under_vmap() -> Any:
    def dist(a: Any, b: Any) -> Any:
        return np.sqrt(np.sum((a - b) ** 2))  # here

    def f(p: Any) -> Any:
        return np.sum(fg.vmap(lambda a: fg.vmap(lambda b: dist(a, b))(p))(p))

    return f, (RNG.normal(size=(4, 2)),)


@case("cut-derivative", "unused-argument")
def zero_times() -> Any:
    def f(x: Any, w: Any) -> Any:
        return np.argmax(x) + 0 * x[0] + np.sum(w * w)  # here

    return f, (Y, W)


@case("kink", "singular-derivative")
def custom_rule_kink() -> Any:
    @fg.custom_vjp
    def soft(x: Any) -> Any:
        return np.abs(x)

    soft.defvjp(lambda x: (np.abs(x), np.sign(x)), lambda s, g: (g * s,))

    def f(x: Any) -> Any:
        return np.sum(soft(x))  # here

    return f, (np.array([0.0, 1.0]),)


@case("singular-derivative")
def power_exponent_zero_base() -> Any:
    def f(a: Any, b: Any) -> Any:
        return np.sum(a**b)  # here

    return f, (np.array([0.0, 2.0]), np.array([0.5, 2.0]))


@case("kink")
def while_in_fori_abs() -> Any:
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            return c + np.abs(x[i]) * (i + 1)  # here

        return fg.lax.fori_loop(0, 4, body, 0.0)

    return f, (np.array([1.0, 0.0, 2.0, -1.0]),)


@case("kink")
def clip_at_bound() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.clip(x, 0.0, 1.0))  # here

    return f, (np.array([1.0, 0.5, 0.0]),)


@case("kink", "singular-derivative")
def det_logdet_zero_matrix_norm2() -> Any:
    def f(a: Any) -> Any:
        return np.linalg.norm(a, 2)  # here

    return f, (np.eye(3),)


@case("singular-derivative", "lost-digits", "overflow")
def near_division() -> Any:
    def f(x: Any) -> Any:
        return np.sum(1.0 / x)  # here

    return f, (np.array([1e-320, 1.0]),)


@case("kink")
def interp_at_knot() -> Any:
    def f(x: Any, fp: Any) -> Any:
        return np.sum(np.interp(x, [0.0, 1.0, 2.0], fp))  # here

    return f, (np.array([0.5, 1.0]), np.array([0.0, 1.0, 5.0]))


@case("kink")
def quantile_ties() -> Any:
    def f(x: Any) -> Any:
        return np.quantile(x, 0.5)  # here

    return f, (np.array([3.0, 1.0, 2.0, 2.0, 5.0]),)


@case("kink")
def percentile_tie_even() -> Any:
    def f(x: Any) -> Any:
        return np.percentile(x, 30) * 2.0  # here

    return f, (np.array([3.0, 1.0, 1.0, 2.0, 5.0, 1.0]),)


@case("kink")
def argsort_ties() -> Any:
    def f(x: Any, w: Any) -> Any:
        order = np.argsort(x)  # here
        return np.sum(x[order] * w)

    return f, (np.array([2.0, 1.0, 2.0, 0.0]), np.arange(4.0))


@case("kink")
def ptp_ties() -> Any:
    def f(x: Any) -> Any:
        return np.ptp(x)  # here

    return f, (np.array([2.0, 1.0, 2.0, 0.0]),)


@case("kink")
def topk_ties() -> Any:
    def f(x: Any) -> Any:
        return np.sum(fg.lax.top_k(x, 2)[0] * np.array([1.0, 2.0]))  # here

    return f, (np.array([2.0, 1.0, 2.0, 2.0]),)


@case("kink")
def partition_ties() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.partition(x, 2)[:3])  # here

    return f, (np.array([2.0, 1.0, 2.0, 2.0, 0.0]),)


@case("singular-derivative", "kink")
def cbrt_zero() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.cbrt(x))  # here

    return f, (np.array([0.0, 1.0]),)


@case("singular-derivative")
def arccosh_one() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.arccosh(x))  # here

    return f, (np.array([1.0, 2.0]),)


@case("singular-derivative")
def arctanh_edge() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.sqrt(1 - x * x))  # here

    return f, (np.array([1.0, 0.2]),)


@case("kink", "singular-derivative")
def complex_abs_zero() -> Any:
    def f(re: Any, im: Any) -> Any:
        return np.sum(np.abs(re + 1j * im))  # here

    return f, (np.array([0.0, 1]), np.array([0.0, 1]))


@case("kink", "singular-derivative")
def angle_zero() -> Any:
    def f(re: Any, im: Any) -> Any:
        return np.sum(np.angle(re + 1j * im))  # here

    return f, (np.array([0.0, 1]), np.array([0.0, 1]))


@case("kink", "singular-derivative")
def eig_defective() -> Any:
    def f(a: Any) -> Any:
        return np.sum(np.abs(np.linalg.eigvals(a)))  # here

    return f, (np.array([[2.0, 1.0], [0.0, 2.0]]),)


@case("singular-derivative", "kink")
def cholesky_singular() -> Any:
    def f(a: Any) -> Any:
        return np.sum(np.sqrt(np.linalg.det(a @ a.T)))  # here

    return f, (np.array([[1.0, 2.0], [2.0, 4.0]]),)


@case("singular-derivative", "lost-digits")
def inv_near_singular() -> Any:
    def f(a: Any) -> Any:
        return np.sum(np.linalg.inv(a))  # here

    return f, (np.array([[1.0, 1.0], [1.0, 1.0 + 3e-16]]),)


@case("singular-derivative", "kink")
def pinv_rank() -> Any:
    def f(a: Any) -> Any:
        return np.sum(np.linalg.pinv(a))  # here

    return f, (np.array([[1.0, 2.0], [2.0, 4.0]]),)


@case("kink", "singular-derivative")
def fmod_edge() -> Any:
    def f(t: Any) -> Any:
        return np.sum(np.fmod(t, 1.0))  # here

    return f, (np.array([3.0, 0.25]),)


@case("kink", "singular-derivative")
def unwrap_jump() -> Any:
    def f(t: Any) -> Any:
        return np.sum((t + np.pi) % (2 * np.pi) - np.pi)  # here

    return f, (np.array([np.pi, 0.25]),)


@case("kink", "singular-derivative")
def ceil_in_value() -> Any:
    def f(t: Any) -> Any:
        return np.sum(t - np.floor(t))  # here

    return f, (np.array([2.0, 0.25]),)


@case("kink", "kink-of-choice")
def heaviside_times() -> Any:
    def f(t: Any) -> Any:
        return np.sum(t * np.heaviside(t - 1, 0.5) + t)  # here

    return f, (np.array([1.0, 0.25]),)
