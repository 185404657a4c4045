"""What the tests of the examples share: loading one, and what holds for each."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import matplotlib.image
import pytest

FOLDER = Path(__file__).parents[2] / "examples"
sys.path.append(str(FOLDER))  # an example finds there what it shares with the others


@cache
def load(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


def run(example: ModuleType, *arguments: object) -> object:
    """What the example's `run` gives for a command line."""
    return example.run(example.parse_arguments([str(argument) for argument in arguments]))


def check_picture(path: Path) -> None:
    """It is there, of some size, and not of one color."""
    pixels = matplotlib.image.imread(path)
    assert min(pixels.shape[:2]) > 300
    assert pixels[..., :3].std() > 0.05


def check_refusal(
    example: ModuleType, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """A bad command line ends with a message and code 2."""
    with pytest.raises(SystemExit) as stopped:
        example.parse_arguments(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
