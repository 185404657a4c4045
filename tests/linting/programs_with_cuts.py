"""Programs with cut paths, lost values, keys, shapes, loops and state."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import funcgrad as fg
from funcgrad import random
from tests.linting.programs import RNG, W, X, Y, case, clean


@case("cut-derivative")
def quantized_layer_in_class() -> Any:
    class Layer:
        def __init__(self, w: Any) -> None:
            self.w = w

        def quantize(self, w: Any) -> Any:
            return (w * 127).astype(np.int8) / 127.0  # here

        def __call__(self, w: Any, x: Any) -> Any:
            return np.tanh(x @ self.quantize(w))

    layer = Layer(W)
    return (lambda w: np.mean((layer(w, X) - Y) ** 2)), (W,)


@case("cut-derivative")
def argmax_embedding() -> Any:
    table = RNG.normal(size=(5, 3))

    def f(logits: Any, table: Any) -> Any:
        pick = np.argmax(logits)  # here
        return np.sum(table[pick] ** 2)

    return f, (RNG.normal(size=5), table)


@case("cut-derivative")
def floor_div_bins() -> Any:
    def f(width: Any, heights: Any) -> Any:
        idx = (np.arange(20) / width).astype(int) % 8  # here
        return np.sum(heights[idx] ** 2)

    return f, (2.3, RNG.normal(size=8))


@case("cut-derivative")
def stop_gradient_in_library() -> Any:
    def normalize(x: Any) -> Any:  # helper
        return x / fg.stop_gradient(np.linalg.norm(x))

    def target(q: Any) -> Any:
        return fg.stop_gradient(q)  # here

    def f(q: Any, w: Any) -> Any:
        return np.sum((np.tanh(X @ w) - target(q)) ** 2)

    return f, (RNG.normal(size=30), W)


@case("cut-derivative")
def hard_count_in_scan() -> Any:
    def f(th: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = c + np.where(x > th, 1.0, 0.0)  # here
            return c, c * 0.1

        c, ys = fg.lax.scan(step, 0.0, xs)
        return c + np.sum(ys) + np.sum(xs)

    return f, (0.2, Y)


@case("cut-derivative")
def rounded_under_vmap() -> Any:
    def one(a: Any, b: Any) -> Any:
        return np.round(a, 1) * b  # here

    def f(a: Any, b: Any) -> Any:
        return np.sum(fg.vmap(one)(a, b))

    return f, (Y, Y[::-1].copy())


@case("cut-derivative")
def sign_ste_forgotten_checkpoint() -> Any:
    def binarize(w: Any) -> Any:
        return np.sign(w)  # here

    def f(w: Any, v: Any) -> Any:
        return np.sum((X @ (binarize(w))) ** 2) + np.sum(v**2)

    return fg.checkpoint(f), (W, Y)


@case("left-trace", "cut-derivative")
def scalar_item() -> Any:
    def f(w: Any) -> Any:
        scale = w.max().item()  # here
        return np.sum(w / scale)

    return f, (W,)


@case("left-trace", "cut-derivative")
def list_of_floats() -> Any:
    def f(w: Any) -> Any:
        vals = [float(v) for v in w]  # here
        return np.mean(np.array(vals) ** 2)

    return f, (W,)


@case("left-trace", "cut-derivative")
def external_scipy() -> Any:
    def f(w: Any) -> Any:
        return np.sum(w) * math.exp(-w[0])  # here

    return f, (W,)


@case("left-trace", "cut-derivative")
def asarray_dtype() -> Any:
    def prepare(w: Any) -> Any:
        return np.array(w.tolist())  # here

    def f(w: Any) -> Any:
        return np.sum(prepare(w) ** 2)

    return f, (W,)


@case("missing-derivative")
def pure_callback_no_rule() -> Any:
    def host(x: Any) -> Any:
        return np.asarray(x) ** 2

    def f(x: Any) -> Any:
        y = fg.pure_callback(host, fg.ShapeDtypeStruct(x.shape, x.dtype), x)  # here
        return np.sum(y) + np.sum(x) * 0

    return f, (W,)


@case("cut-derivative")
def int_dtype_default() -> Any:
    def f(x: Any, n: Any) -> Any:
        k = np.asarray(n, dtype=int) if not hasattr(n, "astype") else n.astype(int)  # here
        return np.sum(x**k)

    return f, (np.abs(W) + 1, 2.0)


@case("unused-argument")
def unused_bias_of_network() -> Any:
    class Net:
        def init(self) -> Any:
            return {
                "w1": RNG.normal(size=(4, 8)),
                "b1": RNG.normal(size=8),
                "w2": RNG.normal(size=8),
            }

        def __call__(self, p: Any, x: Any) -> Any:
            h = np.tanh(x @ p["w1"])
            return h @ p["w2"]

    net = Net()
    p = net.init()
    return (lambda p: np.mean((net(p, X) - Y) ** 2)), (p,)


@case("unused-argument")
def loop_state_thrown_away() -> Any:
    def f(a: Any, b: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            s, t = c
            return (s + a * x, t * b), None

        (s, _t), _ = fg.lax.scan(step, (0.0, 1.0), xs)
        return s

    return f, (1.3, 0.7, Y)


@case("unused-result")
def dead_output() -> Any:
    def f(w: Any) -> Any:
        h = np.tanh(X @ w)
        reg = np.sum(w**2) * 0.1  # noqa: F841 # here
        return np.mean((h - Y) ** 2)

    return f, (W,)


@case("hidden-nan")
def where_log() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.where(x > 0, x * np.log(x), 0.0))  # here

    return f, (np.array([0.0, 0.5, 1.0]),)


@case("hidden-nan")
def where_div_method() -> Any:
    class Ratio:
        def __call__(self, a: Any, b: Any) -> Any:
            safe = np.where(b == 0, 0.0, a / b)  # here
            return safe

    r = Ratio()
    return (lambda a, b: np.sum(r(a, b))), (np.array([1.0, 2]), np.array([0.0, 3]))


@case("hidden-nan")
def cond_by_select_in_vmap() -> Any:
    def safe(x: Any) -> Any:
        return fg.lax.cond(x > 0, lambda x: np.sqrt(x), lambda x: 0.0 * x, x)  # here

    return (lambda x: np.sum(fg.vmap(safe)(x))), (np.array([-1.0, 4.0, 0.0]),)


@case("hidden-nan", "overflow")
def nan_to_num() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.nan_to_num(np.log(x) * x))  # here

    return f, (np.array([0.0, 0.5]),)


@case("overflow")
def softmax_naive() -> Any:
    def softmax(z: Any) -> Any:
        e = np.exp(z)  # here
        return e / e.sum()

    def f(z: Any) -> Any:
        return -np.log(softmax(z)[0])

    return f, (np.array([10.0, 800.0, 3.0]),)


@case("overflow")
def softplus_in_scan() -> Any:
    def f(w: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return c + np.log(1 + np.exp(w * x)), None  # here

        return fg.lax.scan(step, 0.0, xs)[0]

    return f, (900.0, np.abs(Y) + 0.9)


@case("overflow")
def cosh_float32() -> Any:
    def f(x: Any) -> Any:
        return np.sum(1 / np.cosh(x))  # here

    return f, (np.array([1.0, 95.0], np.float32),)


@case("lost-digits")
def variance_textbook() -> Any:
    def var(x: Any) -> Any:
        return np.mean(x**2) - np.mean(x) ** 2  # here

    return (lambda x: var(x)), (1e8 + RNG.normal(size=50),)


@case("lost-digits", "float32-sum")
def variance_float32() -> Any:
    def f(x: Any) -> Any:
        return np.mean(x * x) - np.mean(x) ** 2  # here

    return f, ((1000 + RNG.normal(size=50) * 0.1).astype(np.float32),)


@case("lost-digits")
def one_minus_cos() -> Any:
    def f(x: Any) -> Any:
        return np.sum((1 - np.cos(x)) / x**2)  # here

    return f, (np.array([1e-7, 2e-7]),)


@case("lost-digits")
def quadratic_root() -> Any:
    def f(a: Any, b: Any, c: Any) -> Any:
        d = np.sqrt(b * b - 4 * a * c)
        return (-b + d) / (2 * a)  # here

    return f, (1e-9, 1e6, 1e-3)


@case("lost-digits")
def log1p_missing() -> Any:
    def f(x: Any) -> Any:
        return np.sum(np.log(1 + x))  # here

    return f, (np.array([1e-15, 3e-15]),)


@case("lost-digits")
def hilbert_solve() -> Any:
    n = 12
    H = 1 / (np.arange(n)[:, None] + np.arange(n) + 1.0)

    def f(h: Any, b: Any) -> Any:
        return np.sum(np.linalg.solve(h, b))  # here

    return f, (H, np.ones(n))


@case("subnormal")
def subnormal_likelihood() -> Any:
    def f(mu: Any, x: Any) -> Any:
        return np.sum(np.exp(-0.5 * (x - mu) ** 2))  # here

    return f, (np.float32(0.0), np.array([13.9, 14.0, 1.0], np.float32))


@case("reused-key")
def same_key_two_layers() -> Any:
    def dropout(key: Any, x: Any) -> Any:
        return x * random.bernoulli(key, 0.5, x.shape)  # here

    def f(w: Any, key: Any) -> Any:
        h = dropout(key, np.tanh(X @ w))
        h = dropout(key, np.sin(h))
        return np.sum(h)

    return f, (RNG.normal(size=(4, 3)), random.key(0))


@case("reused-key")
def key_after_split() -> Any:
    def f(w: Any, key: Any) -> Any:
        k1, _k2 = random.split(key)
        noise = random.normal(k1, (4,))
        more = random.uniform(key, (4,))  # here
        return np.sum(w * noise * more)

    return f, (W, random.key(1))


@case("constant-key")
def key_in_scan_closure() -> Any:
    def f(x: Any, key: Any) -> Any:
        def step(x: Any, _: Any) -> Any:
            x = x + 0.1 * random.normal(key, x.shape)  # here
            return x, None

        return np.sum(fg.lax.scan(step, x, None, length=5)[0])

    return f, (W, random.key(0))


@case("constant-key", "reused-key")
def key_made_inside_python_loop() -> Any:
    def f(x: Any) -> Any:
        for _ in range(3):
            x = x + random.normal(random.key(0), x.shape)  # here
        return np.sum(x)

    return f, (W,)


@case("accidental-broadcast")
def column_predictions() -> Any:
    class Model:
        def predict(self, w: Any, x: Any) -> Any:
            return x @ w

        def loss(self, w: Any, x: Any, y: Any) -> Any:
            return np.mean((self.predict(w, x) - y) ** 2)  # here

    m = Model()
    return m.loss, (RNG.normal(size=(4, 1)), X, Y)


@case("accidental-broadcast")
def keepdims_norm() -> Any:
    def f(x: Any, w: Any) -> Any:
        s = np.sum(x * w, axis=1, keepdims=True)
        return np.sum(s * Y[: s.shape[0]])  # here

    return f, (X, W)


@case("accidental-broadcast")
def column_where() -> Any:
    def f(w: Any) -> Any:
        p = X @ w
        return np.sum(np.where(Y > 0, p, -p))  # here

    return f, (RNG.normal(size=(4, 1)),)


@case("accidental-broadcast")
def column_in_scan() -> Any:
    def f(w: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return c + np.mean((x @ w - Y[:4]) ** 2), None  # here

        return fg.lax.scan(step, 0.0, xs)[0]

    return f, (RNG.normal(size=(4, 1)), RNG.normal(size=(3, 4, 4)))


@case("accidental-broadcast")
def column_in_vmap() -> Any:
    def one(w: Any, y: Any) -> Any:
        return np.mean((X @ w - y) ** 2)  # here

    return (lambda ws: np.sum(fg.vmap(one, in_axes=(0, None))(ws, Y))), (
        RNG.normal(size=(5, 4, 1)),
    )


@case("accidental-broadcast")
def column_in_vmap_both() -> Any:
    def one(x: Any, w: Any, y: Any) -> Any:
        return np.mean((x @ w - y) ** 2)  # here

    return (lambda x, ws, y: np.sum(fg.vmap(one)(x, ws, y))), (
        RNG.normal(size=(5, 6, 4)),
        RNG.normal(size=(5, 4, 1)),
        RNG.normal(size=(5, 6)),
    )


@case("accidental-broadcast")
def column_in_checkpoint_cond() -> Any:
    def one(w: Any) -> Any:
        return np.mean((X @ w - Y) ** 2)  # here

    return (lambda w: fg.lax.cond(w[0, 0] > 0, fg.checkpoint(one), one, w)), (
        RNG.normal(size=(4, 1)),
    )


@clean
def clean_pairwise() -> Any:
    def f(x: Any, y: Any) -> Any:
        d = np.sum(x * x, axis=1, keepdims=True) + np.sum(y * y, axis=1) - 2 * x @ y.T
        return np.sum(np.exp(-d))

    return f, (X, X[:30] + 1)


@clean
def clean_pairwise_vmap() -> Any:
    def f(x: Any) -> Any:
        def one(v: Any) -> Any:
            return np.mean(np.abs(v[:, None] - v))

        return np.sum(fg.vmap(one)(x))

    return f, (X,)


@case("unrolled-loop")
def unrolled_method() -> Any:
    class Sim:
        def run(self, x: Any) -> Any:
            for _ in range(70):
                x = x + 0.01 * np.sin(x)  # here
            return np.sum(x)

    return Sim().run, (W,)


@case("unrolled-loop")
def unrolled_elements() -> Any:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            total = total + x[i] ** 2  # here
        return total

    return f, (RNG.normal(size=100),)


@case("large-constant")
def closed_over_data() -> Any:
    data = RNG.normal(size=(500, 400))

    def f(w: Any) -> Any:
        return np.sum((data @ w) ** 2)  # here

    return f, (RNG.normal(size=400),)


class Counter:
    rate = 1.0

    def bump(self) -> Any:
        self.rate = self.rate * 0.5

    def loss(self, w: Any) -> Any:
        return self.rate * np.sum(w**2)  # here


@case("changing-state")
def attribute_changes() -> Any:
    return Counter().loss, (W,)


TEMPERATURE = 1.0


def anneal() -> Any:
    global TEMPERATURE
    TEMPERATURE *= 0.9


def tempered(w: Any) -> Any:
    return np.sum(w**2) / TEMPERATURE  # here


@case("changing-state")
def global_changes() -> Any:
    return tempered, (W,)


@case("changing-state")
def nonlocal_changes() -> Any:
    rate = 1.0

    def decay() -> Any:
        nonlocal rate
        rate *= 0.5

    def f(w: Any) -> Any:
        return rate * np.sum(w**2)  # here

    f.decay = decay
    return f, (W,)


@case("changing-state")
def dict_changes() -> Any:
    config = {"rate": 1.0}

    def decay() -> Any:
        config["rate"] *= 0.5

    def f(w: Any) -> Any:
        return config["rate"] * np.sum(w**2)  # here

    f.decay = decay
    return f, (W,)


@case("retraced")
def retraced_by_shape() -> Any:
    @fg.jit
    def inner(x: Any) -> Any:
        return np.sum(np.sin(x))

    def f(w: Any) -> Any:
        return sum(inner(w[:k]) for k in range(1, 9))  # here

    return f, (RNG.normal(size=10),)


@case("retraced")
def retraced_by_new_lambda() -> Any:
    def f(w: Any) -> Any:
        total = 0.0
        for _ in range(6):
            total = total + fg.jit(lambda x: np.sum(x**2))(w)  # here
        return total

    return f, (W,)


@case("retraced")
def retraced_by_static() -> Any:
    @partial(fg.jit, static_argnums=1)
    def inner(x: Any, n: Any) -> Any:
        return np.sum(x**n)

    def f(w: Any) -> Any:
        return sum(inner(w, 0.5 * k) for k in range(1, 9))  # here

    return f, (np.abs(W),)
