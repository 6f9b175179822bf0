"""Resumable work: a cell is one question, its answer a file that is written whole.

The file's name holds a digest of the function and all its arguments, so that an answer is found
again as long as the question is the same, whichever part asks it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from checkmate_tf.interrupts import noted_interrupts
from solvers.graph.files import read_json, write_whole


@dataclass(frozen=True)
class Cell:
    """One question.

    Attributes:
        name: what a person calls it.
        function: a function of a module; what it returns can be written as JSON.
        arguments: by name; their `repr` says all that there is in them.
    """

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file_name(self) -> str:
        """Of the answer; the same for the same question."""
        told = f"{self.function.__module__}.{self.function.__qualname__}"
        told += "".join(f"; {key}={self.arguments[key]!r}" for key in sorted(self.arguments))
        digest = hashlib.sha256(told.encode()).hexdigest()[:12]
        return f"{re.sub(r'[^A-Za-z0-9]+', '-', self.name)}-{digest}.json"


def answers(
    cells: Sequence[Cell],
    folder: Path,
    *,
    jobs: int = 1,
    backend: str = "",
    title: str = "",
    console: Console | None = None,
) -> list[Any]:
    """The answers of all cells, in order; those that have a file in `folder` are read from it.

    Args:
        jobs: cells at a time.
        backend: joblib's; its own choice if empty.

    Raises:
        KeyboardInterrupt: Ctrl-C; what was answered by then is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = {each.file_name: each for each in cells if not (folder / each.file_name).exists()}
    chosen = joblib.parallel_config(backend) if backend else contextlib.nullcontext()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console or Console(stderr=True),
        transient=True,
    )
    with bar, chosen, noted_interrupts() as interrupts:
        task = bar.add_task(title, total=len(missing))
        work = joblib.Parallel(jobs, return_as="generator_unordered")(
            joblib.delayed(_answer)(cell) for cell in missing.values()
        )
        for name, text in work:
            interrupts.pass_on()  # the solver that was running has answered with what it had
            write_whole(folder / name, text)
            bar.advance(task)
    return [read_json(folder / cell.file_name)["answer"] for cell in cells]


def _answer(cell: Cell) -> tuple[str, str]:
    answer = cell.function(**cell.arguments)
    return cell.file_name, json.dumps({"question": cell.name, "answer": answer}, indent=1)
