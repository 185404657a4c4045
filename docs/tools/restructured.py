"""Parts of pages in reStructuredText that are drawn when the site is built; needs no Sphinx."""

from __future__ import annotations

from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Write a file, unless that is what it contains: Sphinx then need not read it again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def title(text: str, line: str = "=") -> str:
    return f"{text}\n{line * len(text)}\n"


def indented(text: str, by: int = 3) -> str:
    return "\n".join(" " * by + row if row else "" for row in text.splitlines())


def table(rows: list[tuple[str, str]], widths: str = "30 70") -> str:
    """A table of two columns without a head."""
    lines = [".. list-table::", f"   :widths: {widths}", "   :class: names", ""]
    for first, second in rows:
        lines += [f"   * - {first}", f"     - {second}"]
    return "\n".join(lines) + "\n"
