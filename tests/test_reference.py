"""The reference: every public name has its entry, with what its kind needs.

What a name needs, by its kind:

- of another library (a dtype, SciPy's sparse arrays, functions that are passed through for known
  values), a constant, a second name of something: a line that says whose it is;
- the counterpart of a function of NumPy or SciPy, by its path: a summary, and the link to the
  original, whose parameters it has (that they are there, `tests/test_surface.py` checks);
- an exception, and a name of ``funcgrad.interop``, whose functions have the arguments of the
  library whose programs they run: a summary;
- any other function or class, which is ours alone or follows JAX: a summary; every parameter in the
  docstring, under ``Args:`` or between backticks, or a reference to the function that has the same
  ones; and an example that is executed, in the docstring or in ``docs/examples.txt``.

Results of functions (classes that nobody makes by hand) need no example, and neither do names whose
only effect is on files, on the terminal, or none at all here.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.tools import drawings, examples, gallery, overview
from docs.tools.names import (
    Name,
    all_names,
    described_as,
    described_parameters,
)

ROOT = Path(__file__).parents[1]

REFERS = re.compile(r"[Aa]s (?:of |for )?`|[Ss]ee `|[Tt]he same as `|: `|^`")
"""How a docstring says that its parameters are those of another function."""

NO_EXAMPLE = {
    "funcgrad": {
        "ClosedJaxpr", "SymbolicZero", "print_environment_info", "log_compiles",
        "default_device", "default_matmul_precision", "enable_x64",
    },
    "funcgrad.data": {"load", "mnist"},
    "funcgrad.distributed": {"load"},
    "funcgrad.experimental.optimizers": {
        "OptimizerState", "pack_optimizer_state", "unpack_optimizer_state",
    },
    "funcgrad.lax": {"ragged_dot_general", "scatter_sub"},
    "funcgrad.lax.linalg": {"ormqr"},
    "funcgrad.optim": {
        "GradientTransformationExtraArgs", "scale_by_zoom_linesearch", "with_extra_args_support",
    },
    "funcgrad.nn.layers": {"avg_pool", "group_norm", "min_pool", "rms_norm"},
    "funcgrad.scipy.optimize": {"OptimizeResults"},
    "funcgrad.tree_util": {
        "PyTreeDef",
        "flatten_one_level_with_keys", "register_pytree_with_keys",
        "register_pytree_with_keys_class", "register_static",
    },
}  # fmt: skip
"""Effects on files and on the terminal, words of JAX without an effect, and what needs a program
to show: those are in tutorials."""


def of_its_own(name: Name) -> bool:
    """Whether the name needs described parameters and an example."""
    return (
        name.is_ours
        and not name.module.startswith("funcgrad.interop.")
        and not name.is_borrowed
        and name.original is None
        and name.kind in ("function", "class")
        and described_as(name).path == name.path
    )


OWN = [name for name in all_names() if of_its_own(name)]


def test_every_public_name_has_a_summary():
    assert [name.path for name in all_names() if len(name.summary) < 4] == []


def test_every_counterpart_links_to_its_original():
    links = [name.link for name in all_names() if name.original is not None]
    assert len(links) > 1000
    assert all(link.endswith(".html") for link in links)


def test_no_internal_name_has_an_entry():
    hidden = [n.path for n in all_names() if any(p.startswith("_") for p in n.path.split("."))]
    assert hidden == []


def undescribed(name: Name) -> list[str]:
    """Parameters of which the docstring does not speak."""
    text = name.documentation
    if REFERS.search(text) or name.is_result:
        return []
    literals = " ".join(re.findall(r"`+([^`]+)`", text))
    known = described_parameters(text) | set(re.findall(r"\w+", literals))
    return [q for q in name.parameters if q not in known and not q.startswith("_")]


def test_every_parameter_is_described():
    found = {name.path: undescribed(name) for name in OWN}
    assert {path: missing for path, missing in found.items() if missing} == {}


def test_every_name_has_an_executed_example():
    known = examples.by_path()
    missing = [
        name.path
        for name in OWN
        if ">>>" not in name.documentation
        and name.path not in known
        and not name.is_result
        and name.name not in NO_EXAMPLE.get(name.module, ())
    ]
    assert missing == []


def test_no_exception_from_the_rule_is_out_of_date():
    own = {name.path: name for name in OWN}
    for module, names in NO_EXAMPLE.items():
        for name in names:
            assert ">>>" not in own[f"{module}.{name}"].documentation, name


@pytest.mark.parametrize("module", sorted({e.module for e in examples.by_path().values()}))
def test_examples_show_what_they_say(module):
    for example in examples.by_path().values():
        if example.module == module:
            assert examples.run(example) == example.shown, example.path


def test_every_example_belongs_to_a_public_name():
    assert examples.by_path().keys() <= {name.path for name in all_names()}


# Drawings, charts and the gallery.


@pytest.mark.parametrize("path", sorted(drawings.FOLDER.glob("*.txt")), ids=lambda p: p.stem)
def test_drawings_are_those_of_their_texts(path):
    assert path.with_suffix(".svg").read_text() == drawings.draw(path.read_text())


def test_the_chart_is_that_of_the_benchmarks():
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert overview.CHART.read_text() == overview.draw(overview.means(page))


def test_the_gallery_shows_every_example():
    shown = [name for names in gallery.GROUPS.values() for name in names]
    assert sorted(shown) == gallery.examples()
    runs = gallery.recorded()
    assert sorted(runs) == gallery.examples()
    for left in runs.values():
        assert left["pictures"] or left["printed"]
        assert all((gallery.FOLDER / picture).exists() for picture in left["pictures"])
    assert gallery.PAGE.read_text() == gallery.page(runs)


def test_the_gallery_is_small():
    assert sum(path.stat().st_size for path in gallery.FOLDER.iterdir()) < 3_000_000
