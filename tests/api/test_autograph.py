"""Python's branches and loops on traced values: `autograph`.

Every program runs as Python runs it, with values that are known, and compiled, mapped and
differentiated, where nothing is known.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import errors

GLOBAL = 2.0


@fg.autograph
def ends_in_arms(x: float) -> Any:
    """A docstring."""
    if x > 3:
        return x * x
    if x > 1:
        if x > 2:
            return x + GLOBAL
        x = x * 10
    elif x < -1:
        x = -x
    else:
        return 0.5 * x
    y = x + 1
    if y > 12:
        return y
    return y * x


@fg.autograph
def assigns(x: float) -> Any:
    y = 1.0
    if (x > 0 and x < 2) or x == 3:
        y, z = x, 2 * x
        y += z
    else:
        z = -x
    if not x > 1:
        z = z * y
    k = 1 if x > 1 else 2
    return y + z if -1 < x <= 1 else (y - z) * k


@fg.autograph
def collatz(x: float) -> Any:
    n, steps = int(abs(x) * 4) + 3, 0
    while n != 1:
        steps += 1
        if n % 2:
            n = 3 * n + 1
            continue
        n = n // 2
    return steps + 0.0 * x


@fg.autograph
def leaves_loops(x: float) -> Any:
    total, y = 0.0, fnp.zeros(8)
    for i in range(8):
        if total > 3:
            break
        if i % 3 == 1 or total < -2:
            continue
        total = total + x
        y[i] = total
    else:
        total = total + 100
    while True:
        x = x * 2
        if abs(x) > 20:
            break
    else:
        total = 0.0
    return total + x, y


@fg.autograph
def returns_from_loops(x: float) -> Any:
    for i in range(4):
        for j in range(1, 5):
            x = x + 0.1 * j
            if x > 3:
                return x * i, j
            if x * j < -2:
                break
        else:
            x = x * 1.5
    return x, -1


@fg.autograph
def traced_bounds(x: float) -> Any:
    n = int(abs(x) * 3)
    total = 0.0
    for i in range(n, -n, -2):
        total = total + x * i
    for _ in range(n):
        total = 0.5 * total + 1
        if total > 1.9:
            break
    return total, max(x, total, 1.0) - min(n, 3)


@fg.autograph
def items(x: float) -> Any:
    best, table = -1.0, fnp.arange(6.0) * x
    for value, weight in zip([1.0, 2.0, 3.0], (x, -x, 2 * x), strict=True):
        if value * weight > 4:
            best = value
            break
    for value in table:
        if value > 2:
            best = best + value
            break
    return best


@fg.autograph
def writes(x: float) -> Any:
    u, v = fnp.arange(4.0), fnp.ones(4)
    middle = u[1:3]

    def double(array: Any) -> None:
        array[...] = 2 * array

    if x > 0:
        double(middle)
        v = u + 1
    else:
        u[0] = x
    steps, w = 0, v + 1
    while u.sum() < 30 and steps < 20:
        old = u.copy()
        middle += 1.0
        u[0], u[3] = u[3], u[0]
        v, w = w - old, v * 0.5
        w[1:] += 0.25
        steps += 1
    return u, v, w, middle, steps


@fg.autograph
def inner_functions(x: float) -> Any:
    calls = 0.0

    def relu(y: Any) -> Any:
        nonlocal calls
        if y > 0:
            calls = calls + 1
            return y
        return 0.1 * y

    pick = lambda a, b: a if a > b else b  # noqa: E731
    values = [relu(x + k) if k else pick(x, 0.5) for k in range(3)]
    return sum(values) * calls


@fg.autograph
def inside_others(x: float) -> Any:
    with np.errstate(all="ignore"):
        if x > 1:
            x = x * 2
        try:
            while x < 5:
                x = x + 1
                if x > 3:
                    break
        finally:
            x = x + 0.5
    return x


@fg.autograph
def ends_deep_inside(x: float) -> Any:
    """What follows each `if` runs in its arms, and so in those around it."""
    y, z, w = x, 0.0, 1.0 + x
    if x > 0.2:
        if x > 0.5:
            if x > 2:
                if x > 4:
                    return y
                y = y * 2
            z = z + y
        y = y + 0.5
    if y > 3:
        z = z - 1
        if y > 8:
            return z
        z = z * y
    return w * z + y


class Solver:
    def __init__(self, x: float) -> None:
        self.x, self.h, self.rejected = x, 0.5, 0
        self.state: dict[str, Any] = {"error": 0.0, "history": [x, 1.0]}

    @fg.autograph
    def step(self) -> None:
        new = self.x - self.h * np.sin(self.x)
        if abs(new - self.x) > 0.2:
            self.h /= 2
            self.rejected += 1
            self.state["error"] = self.state["error"] + abs(new)
        else:
            self.x, self.state["history"][1] = new, self.x
            self.h = self.h * 1.1


def in_objects(x: float) -> Any:
    solver = Solver(x)
    for _ in range(5):
        solver.step()
    state = solver.state
    return solver.x * solver.h, solver.rejected + state["error"], state["history"]


@fg.autograph
def in_containers(x: float) -> Any:
    state, values = {"x": abs(x), "k": 0}, [x, 2 * x, 0.0]
    while state["x"] < 10:
        state["x"] = state["x"] * 1.5 + 0.1
        state["k"] += 1
    for i in range(4):
        if values[0] > values[1]:
            values[0], values[1] = values[1], values[0]
            values[2] += x * i
        else:
            values[0] += 1.5
    return state["x"] * state["k"], values


@fg.autograph
def writes_or_replaces(x: float) -> Any:
    state = {"q": fnp.zeros(4) + x}
    q = fnp.zeros(4) + x
    for k in range(5):
        if np.sum(q) > 3:
            q[k % 4] *= 0.1
            state["q"][k % 4] = q[0]
        else:
            q = q + 0.7
            state["q"] = state["q"] * q
    return q, state["q"]


PROGRAMS = [
    ends_in_arms,
    ends_deep_inside,
    in_objects,
    in_containers,
    writes_or_replaces,
    assigns,
    collatz,
    leaves_loops,
    returns_from_loops,
    traced_bounds,
    items,
    writes,
    inner_functions,
    inside_others,
]
POINTS = np.array([-3.31, -1.73, -0.61, 0.43, 0.71, 1.37, 2.23, 3.07, 4.69])


def flat(results: Any) -> Any:
    return np.concatenate([np.ravel(np.asarray(x, float)) for x in fg.tree.leaves(results)])


@pytest.mark.sampled(16)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_compute_what_python_computes(program: Callable[..., Any]) -> None:
    expected = [flat(program(float(x))) for x in POINTS]
    compiled = fg.jit(program)
    for x, want in zip(POINTS, expected, strict=True):
        np.testing.assert_allclose(flat(compiled(x)), want, rtol=1e-14)
    mapped = fg.jit(fg.vmap(program))(POINTS)
    for i, want in enumerate(expected):
        got = flat(fg.tree.map(lambda leaf, i=i: leaf[i], mapped))
        np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_derivatives_are_those_of_the_steps_that_ran(program: Callable[..., Any]) -> None:
    total = lambda x: sum(fnp.sum(leaf) for leaf in fg.tree.leaves(program(x)))  # noqa: E731
    eager, staged = fg.grad(total), fg.jit(fg.grad(total))
    forward = fg.jit(lambda x: fg.jvp(total, (x,), (1.0,))[1])
    h = 1e-6
    for x in POINTS:
        slope = (float(total(x + h)) - float(total(x - h))) / (2 * h)
        for found in (eager(x), staged(x), forward(x)):
            np.testing.assert_allclose(found, slope, rtol=1e-6, atol=1e-6)


def test_a_function_stays_what_it_was() -> None:
    def around(scale: float) -> Callable[..., Any]:
        @fg.autograph
        def function(x: float, power: int = 2, *, offset: float = 1.0) -> float:
            """Twice."""
            if x > 0:
                return scale * x**power + offset
            return scale

        return function

    function = around(3.0)
    assert (function.__name__, function.__doc__) == ("function", "Twice.")
    assert function.__qualname__.endswith("around.<locals>.function")
    assert function(2.0) == 13.0
    assert fg.jit(function)(2.0, offset=0.0) == 12.0
    assert fg.jit(around(5.0))(-1.0) == 5.0


class Base:
    def scaled(self, x: Any) -> Any:
        return 2.0 * x


class Model(Base):
    __limit = 1.5

    @fg.autograph
    def scaled(self, x: Any) -> Any:
        if x > self.__limit:
            return super().scaled(x)
        return x


def test_methods() -> None:
    model = Model()
    assert [float(fg.jit(model.scaled)(x)) for x in (1.0, 2.0)] == [1.0, 4.0]


@fg.autograph
def factorial(n: Any, depth: int = 6) -> Any:
    if depth == 0 or n <= 1:
        return 1.0
    return n * factorial(n - 1, depth - 1)


def test_a_global_function_that_calls_itself() -> None:
    assert factorial(5.0) == fg.jit(factorial)(5.0) == 120.0


def test_recursion_and_closures_see_later_values() -> None:
    level = 1.0

    @fg.autograph
    def power(x: Any, n: int) -> Any:
        if n == 0:
            return level
        return power(x, n - 1) * (x if x > 0 else 1.0)

    assert power(3.0, 2) == 9.0
    level = 2.0
    assert fg.jit(power, static_argnums=1)(3.0, 2) == 18.0


def test_known_conditions_stay_pythons() -> None:
    """Nothing is evaluated that Python would not evaluate."""

    @fg.autograph
    def f(x: Any, kind: str) -> Any:
        log = []
        if kind == "a" and not log:
            log.append(x)
        else:
            raise ValueError(kind)
        while len(log) < 3:
            log.append(log[-1] + 1)
        return fnp.stack(log) if log else None.missing

    np.testing.assert_array_equal(fg.jit(f, static_argnums=1)(1.0, "a"), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="b"):
        f(1.0, "b")


def test_loops_that_need_to_know_their_item_are_unrolled() -> None:
    """Nothing remains of the loop that was tried, and nothing is done less often."""
    names, log = ["a", "b", "c", "d", "e", "f"], []

    @fg.autograph
    def f(x: Any) -> Any:
        parts, total = [], 0.0
        for i in range(6):
            if x > i:
                total = total + x
            parts += [total * (names[i] == "c")]
        for i in range(6):
            if total > i:
                total = total + fnp.arange(3.0)[: i % 3].sum()
        for i in range(6):
            if total > i:
                total = total + 0.5
            log.append(i)
        return total, sum(parts)

    expected = f(2.5)
    assert log == list(range(6))
    np.testing.assert_allclose(fg.jit(f)(2.5), expected)
    assert log == 2 * list(range(6))


def test_one_loop_in_the_program() -> None:
    @fg.autograph
    def newton(x: Any) -> Any:
        y = x
        while abs(y * y - x) > 1e-12 * x:
            y = 0.5 * (y + x / y)
        return y

    text = str(fg.make_jaxpr(newton)(2.0))
    assert text.count("while") == 1
    hessian = fg.jit(fg.grad(fg.grad(newton)))(2.0)
    np.testing.assert_allclose(hessian, -0.25 * 2.0**-1.5, rtol=1e-9)


# Refusals.


def line_of(error: BaseException) -> str:
    """The source line that a message names."""
    found = re.search(r"at +(\S*test_autograph.py):(\d+)", str(error))
    assert found is not None, str(error)
    with open(__file__) as file:
        return file.read().splitlines()[int(found[2]) - 1].strip()


@fg.autograph
def differs(x: Any) -> Any:
    if x > 0:  # here
        y = fnp.zeros(3)
    elif x < -1:
        y = fnp.zeros(2)
    else:
        y = fnp.zeros(2)
    return y


@fg.autograph
def differs_in_kind(x: Any) -> Any:
    if x > 0:  # here
        mode = "up"
    elif x < -1:
        mode = "down"
    else:
        mode = "down"
    return mode


@fg.autograph
def no_result(x: Any) -> Any:
    if x > 0:  # here
        return x


@fg.autograph
def changes_a_list(x: Any) -> Any:
    values = [x]
    if x > 0:  # here
        values.append(x)
    return values


@fg.autograph
def changes_an_attribute(x: Any, holder: Any = differs) -> Any:
    if x > 0:  # here
        holder.value = x
    return x


@fg.autograph
def changes_an_array_of_numpy(x: Any) -> Any:
    y = np.zeros(3)
    if x > 0:  # here
        y[0] = 1.0
    return x


@fg.autograph
def changes_its_kind(x: Any) -> Any:
    mode = "first"
    while x < 10:  # here
        mode = "later"
        x = x + 1
    return x, mode


@fg.autograph
def two_names(x: Any) -> Any:
    u = fnp.ones(4)
    part = u[1:]
    while x < 10:  # here
        part += x
        u = u + 1
        x = x + 1
    return u


@fg.autograph
def an_array(x: Any) -> Any:
    if fnp.ones(3) * x > 0:  # here
        return x
    return -x


@fg.autograph
def inside_try(x: Any) -> Any:
    try:
        if x > 0:  # here
            return x
    finally:
        pass
    return -x


@fg.autograph
def in_a_comprehension(x: Any) -> Any:
    return sum([k for k in range(3) if k > x])  # here


REFUSALS = [
    (differs, errors.ShapeError, r"`y` differs between the arms of an `if`.*\n.*\n.*f64\[2\]\n"),
    (differs_in_kind, errors.TreeError, r"`mode` differs between the arms.*\n.*\n.*'up'|'down'"),
    (no_result, errors.TreeError, r"the result differs between .*\n.*\n.*None|f64\[\]"),
    (changes_a_list, errors.TreeError, r"`values` is a list that is changed inside of `if`"),
    (changes_an_attribute, errors.ArgumentError, r"the attribute `holder.value` is assigned"),
    (changes_an_array_of_numpy, errors.ArgumentError, r"`y` is an array of NumPy, f64\[3\]"),
    (changes_its_kind, errors.TreeError, r"`mode` is 'first' and becomes 'later' in a step of"),
    (two_names, errors.ArgumentError, r"`part` and `u` are names of one array, which a step"),
    (an_array, errors.ShapeError, r"`if` needs one bool, got bool\[3\]"),
    (inside_try, errors.TracerBoolConversionError, r"from inside of `with`, `try` or `match`"),
    (in_a_comprehension, errors.TracerBoolConversionError, r"the condition of a comprehension"),
]


@pytest.mark.parametrize(("program", "kind", "text"), REFUSALS)
def test_refusals_name_the_line(program: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text) as raised:
        fg.jit(program)(1.0)
    assert line_of(raised.value).endswith("# here")


@fg.autograph
def one_sided(x: Any) -> Any:
    if x > 0:
        y = x
    return y  # here


def test_a_variable_of_one_arm_has_no_value_behind() -> None:
    assert one_sided(1.0) == 1.0
    with pytest.raises(NameError, match="'y'") as raised:
        fg.jit(one_sided)(1.0)
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert [f.line for f in frames if f.filename == __file__][-1] == "return y  # here"


def test_errors_have_the_lines_of_the_source() -> None:
    @fg.autograph
    def f(x: Any) -> Any:
        while x < 5:
            if x > 2:
                x = x + fnp.ones(2) @ fnp.ones(3)  # here
            x = x + 1
        return x

    with pytest.raises(ValueError, match="here") as raised:
        fg.jit(f)(1.0)
    assert line_of(raised.value).endswith("# here")


def test_what_has_no_source() -> None:
    names: dict[str, Any] = {}
    exec("def f(x):\n    return x", names)
    with pytest.raises(errors.ArgumentError, match="of f cannot be rewritten: its source is not"):
        fg.autograph(names["f"])
    with pytest.raises(errors.ArgumentError, match=r"holds no `def` of that name"):
        fg.autograph(lambda x: x)
    with pytest.raises(errors.ArgumentError, match=r"defined by `def`, got Jitted.*below other"):
        fg.autograph(fg.jit(one_sided))

    def generator(x: Any) -> Any:
        yield x

    with pytest.raises(errors.ArgumentError, match=r"of generator cannot .*: it is a generator"):
        fg.autograph(generator)
