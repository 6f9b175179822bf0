"""Runs notebooks as Jupyter does, each in a kernel of its own.

python -m tests.notebooks      # runs docs/*.ipynb from start to end, and keeps what they show
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
SECONDS = 900
"""Until a cell that hangs is ended."""


@dataclass(frozen=True)
class Ran:
    """A notebook after its run, and each text that its cells showed on the way."""

    notebook: Any
    shown: list[tuple[int, str]] = field(default_factory=list)

    def outputs(self, cell: int) -> list[Any]:
        return self.notebook.cells[cell].outputs


def run(notebook: Any, folder: Path, **environment: str) -> Ran:
    """Run a copy of a notebook in `folder`; what a cell raises that may not is raised here."""
    ran = Ran(nbformat.from_dict(notebook))

    class Client(NotebookClient):
        def process_message(self, message: Any, cell: Any, number: int) -> Any:
            content = message["content"]
            if message["msg_type"] in ("display_data", "update_display_data"):
                ran.shown.append((number, content["data"].get("text/plain", "")))
            return super().process_message(message, cell, number)

    client = Client(
        ran.notebook,
        timeout=SECONDS,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    client.execute(env={**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(folder), **environment})
    return ran


def cells(*sources: str) -> Any:
    """A notebook of these cells."""
    new = nbformat.v4
    return new.new_notebook(cells=[new.new_code_cell(each) for each in sources])


def without_files(notebook: Any) -> None:
    """Leave out of errors which files they went through: those of one machine."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                output.evalue = _without_files(output.evalue)
                output.traceback = [_without_files(each) for each in output.traceback]


def _without_files(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", re.sub(r'(?m)^\s*File ".*\n?', "", text))


def main() -> None:
    """Run each notebook that is named, or all of docs/, and write it with what it shows."""
    for path in map(Path, sys.argv[1:] or sorted(ROOT.glob("docs/*.ipynb"))):
        notebook = nbformat.read(path, as_version=4)
        with tempfile.TemporaryDirectory() as folder:
            plans = str(Path(folder) / "plans")
            ran = run(notebook, Path(folder), CHECKMATE_TF_PLANS=plans)
        without_files(ran.notebook)
        nbformat.write(ran.notebook, path)
        print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
