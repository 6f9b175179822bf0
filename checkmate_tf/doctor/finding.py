"""What one examination found, and its text of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

_WIDTH = 80
_NAME = 20


@dataclass(frozen=True)
class Finding:
    """Facts, and what follows from them.

    Attributes:
        works: nothing is wrong.
        verdict: "works", or what is wrong and what to do.
        facts: (what, how it is), in the order in which they are read.
        lines: of an error's traceback, as they are.
    """

    works: bool
    verdict: str
    facts: Sequence[tuple[str, str]] = ()
    lines: Sequence[str] = ()


def report_of(findings: Mapping[str, Finding]) -> str:
    """All findings as the text that a user reads, or attaches to a bug report.

    Args:
        findings: by what was examined.

    Example:
        >>> print(report_of({"packages": Finding(True, "works", (("Python", "3.12"),))}), end="")
        checkmate-tf doctor
        <BLANKLINE>
        packages
          Python              3.12
        <BLANKLINE>
        verdict
          packages            works
    """
    sections = {title: _section(finding) for title, finding in findings.items()}
    sections["verdict"] = [
        line
        for title, each in findings.items()
        for line in _row(title, f"{'' if each.works else 'WRONG: '}{each.verdict}")
    ]
    parts = ["\n".join([title, *lines]) for title, lines in sections.items()]
    text = "\n\n".join(["checkmate-tf doctor", *parts]) + "\n"
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text


def _section(finding: Finding) -> list[str]:
    lines = [line for name, value in finding.facts for line in _row(name, value)]
    for line in finding.lines:
        indent = "  " + " " * (len(line) - len(line.lstrip()))
        lines += wrap(line.strip(), _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ")
    return lines


def _row(name: str, value: str) -> list[str]:
    first, *others = wrap(value, _WIDTH - _NAME - 2) or [""]
    return [f"  {name:<{_NAME}}{first}".rstrip(), *(" " * (_NAME + 2) + each for each in others)]
