"""The reference: every public name has its entry, with what its kind needs.

What a name needs, by its kind:

- of another library (a dtype, SciPy's sparse arrays, functions that are passed through for known
  values), a constant, a second name of something: a line that says whose it is;
- an exception, and a name of ``funcgrad.interop``, whose functions have the arguments of the
  library whose programs they run: a summary;
- any other function or class: in its docstring a summary, a line for every parameter, and an
  example that is executed. The counterpart of a function of NumPy or SciPy also has a link to the
  original, and its example is right if the original gives the same.

Results of functions (classes that nobody makes by hand) need no example.
"""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import io
import re
import shutil
import sys
import warnings
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import scipy

import funcgrad as fg
from docs.tools import drawings, gallery, overview
from docs.tools.names import Name, all_names, described_as, undescribed
from tests.distributed import launching
from tests.test_docs import DOCTEST_FLAGS, Checker, modules

ROOT = Path(__file__).parents[1]

SHORT = re.compile(r"^(Args|Returns|Raises|Example): \S", re.MULTILINE)

NO_EXAMPLE = {"funcgrad.data.mnist"}
"""What reads files that are not here."""

SLOW = {"funcgrad.scipy.integrate.tplquad"}
"""Counterparts whose originals take seconds."""


def is_described(name: Name) -> bool:
    """Whether the name needs described parameters and an example."""
    return (
        name.is_ours
        and not name.module.startswith("funcgrad.interop.")
        and not name.is_host_function
        and name.kind in ("function", "class")
        and described_as(name).path == name.path
    )


DESCRIBED = [name for name in all_names() if is_described(name)]


def test_functions_of_other_libraries_have_the_names_under_which_they_are_found():
    """Tables assign many of them at once, in the order of a list."""
    found = [name for name in all_names() if hasattr(name.value, "is_host_function")]
    assert len(found) > 400
    assert [name.path for name in found if name.value.__name__ != name.name] == []


def test_every_public_name_has_a_summary():
    assert [name.path for name in all_names() if len(name.summary) < 4] == []


def test_summaries_say_more_than_the_name_of_the_original():
    assert [name.path for name in DESCRIBED if name.summary.startswith("As `")] == []


def test_every_counterpart_links_to_its_original():
    links = [name.link for name in all_names() if name.original is not None]
    assert len(links) > 1000
    assert all(link.endswith(".html") for link in links)


def test_no_internal_name_has_an_entry():
    hidden = [n.path for n in all_names() if any(p.startswith("_") for p in n.path.split("."))]
    assert hidden == []


def test_every_parameter_is_described():
    found = {name.path: undescribed(name) for name in DESCRIBED}
    assert {path: missing for path, missing in found.items() if missing} == {}


def test_sections_are_shown_in_full():
    """In sources, those of one line may stand behind their headings."""
    assert [n.path for n in all_names() if n.is_ours and SHORT.search(n.documentation)] == []
    for module in map(importlib.import_module, modules()):
        for name, function in vars(module).items():
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                assert "\n    Example: " not in (function.__doc__ or ""), name


def test_every_name_has_an_executed_example():
    missing = [
        name.path for name in DESCRIBED if ">>>" not in name.documentation and not name.is_result
    ]
    assert set(missing) == NO_EXAMPLE


def numbers_of(value: Any) -> list[np.ndarray]:
    """The arrays and numbers of a result, in their order."""
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in numbers_of(item)]
    return [np.asarray(value)]


def calls_of(name: Name) -> list[str]:
    """The examples of a docstring that are a call of the function itself."""
    found = doctest.DocTestParser().get_examples(name.documentation)
    own = f"fg.{name.path.removeprefix('funcgrad.')}("
    return [example.source for example in found if example.source.startswith(own)]


@pytest.mark.parametrize("module", sorted({n.module for n in DESCRIBED if n.original}))
def test_originals_give_the_same(module):
    """The examples of counterparts, evaluated with the functions of NumPy and SciPy."""
    importlib.import_module(module.removeprefix("funcgrad."))
    names: dict[str, Any] = {"np": np, "fg": fg, "scipy": scipy}
    for name in DESCRIBED:
        if name.module != module or name.original is None or name.path in SLOW:
            continue
        for source in calls_of(name):
            theirs = source.replace("fg.numpy.", "np.").replace("fg.scipy.", "scipy.")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some of SciPy's functions are deprecated
                expected = numbers_of(eval(theirs, names))
            found = numbers_of(eval(source, names))
            for result, reference in zip(found, expected, strict=True):
                assert result.shape == reference.shape, name.path
                if reference.dtype.kind == "O":
                    assert result == reference, name.path
                else:
                    np.testing.assert_allclose(
                        result, reference, rtol=1e-9, atol=1e-12, err_msg=name.path
                    )


def is_made(name: Name) -> bool:
    """Whether a function was made by another one, so that no module's doctests have it."""
    code = getattr(inspect.unwrap(name.value), "__code__", None) if callable(name.value) else None
    return code is not None and "<locals>" in code.co_qualname


@pytest.mark.parametrize("module", sorted({n.module for n in DESCRIBED if is_made(n)}))
def test_examples_of_made_functions_show_what_they_say(module):
    runner, failures = doctest.DocTestRunner(Checker(), optionflags=DOCTEST_FLAGS), io.StringIO()
    for name in DESCRIBED:
        if name.module == module and is_made(name):
            parser = doctest.DocTestParser()
            test = parser.get_doctest(name.documentation, {}, name.path, None, None)
            runner.run(test, out=failures.write)
    assert not runner.failures, failures.getvalue()


# Drawings, charts and the gallery.


@pytest.mark.parametrize("path", sorted(drawings.FOLDER.glob("*.txt")), ids=lambda p: p.stem)
def test_drawings_are_those_of_their_texts(path):
    assert path.with_suffix(".svg").read_text() == drawings.draw(path.read_text())


def test_chart_and_table_are_those_of_the_benchmarks():
    page = overview.BENCHMARKS.read_text()
    assert overview.CHART.read_text() == overview.draw(
        overview.ratios(overview.means(page, "Time of a call"))
    )
    text = overview.PAGE.read_text()
    assert text == overview.with_table(text, page)


BENCHMARKS = """
### Time of a call, float32, 2 threads

| geometric mean | jax | values | autograd |
| --- | --- | --- | --- |
| dispatch | 0.80 | 3.00 | 250.00 |
| images | 6.00 |  |  |
| total | 2.00 | 3.00 | 250.00 |
| rows behind / all | 1 / 3 | 0 / 1 | 0 / 1 |

### First call, empty cache, float32, 2 threads

| geometric mean | jax |
| --- | --- |
| total | 0.52 |
| rows behind / all | 3 / 3 |
"""


def test_chart_and_table_of_peers_with_gaps():
    found = overview.means(BENCHMARKS, "Time of a call")
    assert found["images"] == {"jax": "6.00"}
    drawing = overview.draw(overview.ratios(found))
    assert drawing.count("#5a9e4b") == 3  # autograd: the legend and two bars
    assert "PyTorch" not in drawing
    assert ">0.8</text>" in drawing
    assert overview.table(BENCHMARKS).splitlines() == [
        "|  | against JAX | against autograd (HIPS) |",
        "| --- | --- | --- |",
        "| calls that do almost nothing | 0.80 | 250.00 |",
        "| images | 6.00 |  |",
        "| all rows | 2.00 | 250.00 |",
        "| rows in which funcgrad is slower | 1 / 3 | 0 / 1 |",
        "| first call, nothing compiled before | 0.52 |  |",
    ]


def test_the_gallery_shows_every_example():
    shown = [name for names in gallery.GROUPS.values() for name in names]
    assert sorted(shown) == gallery.examples()
    runs = gallery.recorded()
    assert sorted(runs) == gallery.examples()
    for left in runs.values():
        assert left["pictures"]
        assert all((gallery.FOLDER / picture).exists() for picture in left["pictures"])
        # Every example says what it has written, here in the folder where it ran.
        rows = [row for row in left["printed"].splitlines() if row.strip().startswith("wrote ")]
        written = "\n".join(rows)
        assert all(picture in written for picture in left["pictures"])
        assert "/" not in written
    assert gallery.PAGE.read_text() == gallery.page(runs)


def test_the_folder_of_examples_lists_them():
    listed = re.findall(r"`(\w+)\.py`", (gallery.EXAMPLES / "README.md").read_text())
    assert set(listed) == {path.stem for path in gallery.EXAMPLES.glob("*.py")}


def test_the_gallery_was_recorded_with_these_examples_and_this_release():
    """If not: ``python -m docs.tools.gallery --due``."""
    assert gallery.due() == []


@pytest.mark.parametrize("name", gallery.examples())
def test_recorded_outputs_show_no_nan_and_no_loss_that_rises(name):
    printed = gallery.recorded()[name]["printed"]
    assert gallery.complaints(name, printed) == []
    assert gallery.without_durations(printed) == printed


def test_what_no_example_should_print_is_found():
    rising = "step 0 loss 2.0\nstep 1 loss 1.0\nstep 2 loss 2.5\n"
    assert gallery.complaints("moons", rising) == ["the loss rises: 2.0, 1.0, 2.5"]
    for text in ("loss nan", "value -inf", "gradient (1.0, Infinity)", "[NaN 1.]"):
        assert len(gallery.complaints("moons", text)) == 1
    for text in (
        "nano",
        "an infinite plate",
        "step 1 loss 2.0\nstep 2 loss 2.0",
        "loss 1.0\nloss 2.0",
    ):
        assert gallery.complaints("moons", text) == []
    assert gallery.complaints("broken_training", "found: nan") == []


def test_durations_are_struck_out():
    printed = (
        "eager  1,537.7 us a step\n600 steps in 2.5 s, 12 of 3 sorts\n214,384 images/s\n"
        "batch   median us    images/s   error\n"
        "    1         5.5       1,000     1.0\n"
        "  256        77.0         900     2.0\n"
        "then 5 more\n"
    )
    assert gallery.without_durations(printed) == (
        "eager        # us a step\n600 steps in   # s, 12 of 3 sorts\n      # images/s\n"
        "batch   median us    images/s   error\n"
        "    1           #           #     1.0\n"
        "  256           #           #     2.0\n"
        "then 5 more\n"
    )
    # A unit behind a duration that was struck out before is no head of a column.
    assert gallery.without_durations("in   # s,\nof  0.29\n") == "in   # s,\nof  0.29\n"


def test_published_commands_are_those_of_the_docstrings():
    assert gallery.command("moons") == "python examples/moons.py"
    assert gallery.command("heat_distributed") == "mpiexec -n 4 python examples/heat_distributed.py"
    words = gallery.arguments_of("python examples/moons.py --seed 1")
    assert words == [sys.executable, str(gallery.EXAMPLES / "moons.py"), "--seed", "1"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", gallery.examples())
def test_examples_make_their_pictures(name, tmp_path):
    if name == "ensemble_dask" and importlib.util.find_spec("distributed") is None:
        pytest.skip("there is no dask.distributed")
    if name == "scalar_graph" and shutil.which("dot") is None:
        pytest.skip("there is no Graphviz")
    if gallery.command(name).startswith("mpiexec") and not launching.HAS_MPI:
        pytest.skip("there is no MPI")
    left = gallery.run(name, tmp_path)
    assert left["pictures"] == gallery.recorded()[name]["pictures"]
    assert gallery.complaints(name, left["printed"]) == []
    for picture in tmp_path.iterdir():
        assert picture.stat().st_size > 1000


def test_the_gallery_is_small():
    assert sum(path.stat().st_size for path in gallery.FOLDER.iterdir()) < 3_000_000


STAR = re.compile(r"^from (funcgrad\.\S+) import \*", re.MULTILINE)


def test_packages_list_the_names_of_their_modules() -> None:
    for page in sorted((ROOT / "funcgrad").rglob("__init__.py")):
        package = importlib.import_module(".".join(page.parent.relative_to(ROOT).parts))
        for name in STAR.findall(page.read_text()):
            missing = set(getattr(importlib.import_module(name), "__all__", ()))
            missing -= set(package.__all__)
            assert not missing, f"{package.__name__}.__all__ lacks {missing} of {name}"
