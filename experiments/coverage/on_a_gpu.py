"""Kinds on a GPU, plainly and by a plan: errors, where operations run, peaks; no values.

    python -m experiments.coverage.on_a_gpu                    # all
    python -m experiments.coverage.on_a_gpu --only LSTM GRU

This works over a GPU whose kernels do nothing, too. Values are garbage there, of which a process
may die or not end: then it is left, and another one goes on with the next kind.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from solvers.graph.files import write_whole

SECONDS = 120
"""A training that takes longer, its planning included, is ended."""


@dataclass(frozen=True)
class Trained:
    """What two trainings on a GPU have shown.

    Attributes:
        error: what came instead; "" for nothing.
        places: how many operations of the step ran where: type, then device, then number.
        to_gpu, to_host: how many values of the step are copied there.
        peak: bytes that the GPU's allocator held at most in the second training.
        asked: the budget that was asked for and planned; "unchanged" where there is no plan.
        budget: bytes, of the plan; 0 where there is none.
        messages: what was warned of, and the plan's notes.
        seconds: that all took.
    """

    error: str = ""
    places: dict[str, dict[str, int]] = field(default_factory=dict)
    to_gpu: int = 0
    to_host: int = 0
    peak: int = 0
    asked: str = ""
    budget: int = 0
    messages: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Row:
    """What came out of a kind; `ours` is None where the plain step has not trained."""

    name: str
    plain: Trained
    ours: Trained | None = None

    @property
    def fault(self) -> str:
        """What went wrong by a plan and not without it; "" for nothing."""
        if self.ours is None:
            return ""
        if self.ours.error:
            return self.ours.error
        moved = [
            f"{kind} on {device}"
            for kind, devices in self.ours.places.items()
            for device in devices
            if device not in self.plain.places.get(kind, devices)
        ]
        if moved:
            return f"ran elsewhere than in the plain step: {', '.join(moved)}"
        if self.ours.to_gpu > self.plain.to_gpu or self.ours.to_host > self.plain.to_host:
            return (
                f"copies: {self.plain.to_gpu} → {self.ours.to_gpu} to the GPU, "
                f"{self.plain.to_host} → {self.ours.to_host} to the host"
            )
        if self.ours.peak > self.ours.budget > 0:
            return f"held {self.ours.peak} bytes of {self.ours.budget}"
        return ""


def try_kinds(names: Sequence[str]) -> Iterator[Row]:
    """The rows of these kinds, as they come, from as few processes as it takes."""
    left = list(names)
    while left:
        command = [sys.executable, "-m", "experiments.coverage.gpu_trial", *left]
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
            assert process.stdout is not None
            plain: Trained | None = None
            for line in process.stdout:
                trained = Trained(**json.loads(line))
                if plain is None and not trained.error:
                    plain = trained
                    continue
                yield _row(left.pop(0), plain, trained)
                plain = None
            status = process.wait()
            if left:
                said.seek(0)
                ended = Trained(error=f"exit status {status}: {_why(said.read())}")
                yield _row(left.pop(0), plain, ended)


def _row(name: str, plain: Trained | None, last: Trained) -> Row:
    return Row(name, last) if plain is None else Row(name, plain, last)


def _why(said: str) -> str:
    """What a process said that did not end by itself."""
    lines = [each for each in said.splitlines() if each.strip()] or [""]
    telling = [each for each in lines if each.startswith(("Timeout", "Fatal", "F0000"))]
    return [*telling[:1], lines[-1]][0][:200]


def main() -> None:
    """Try kinds, and print what went wrong."""
    from experiments.coverage.kinds import KINDS

    parser = argparse.ArgumentParser(description="kinds of train steps on a GPU")
    parser.add_argument("--only", nargs="+", choices=KINDS, metavar="KIND", default=list(KINDS))
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="with everything")
    arguments = parser.parse_args()
    rows = []
    for row in try_kinds(arguments.only):
        rows.append(row)
        seconds = row.plain.seconds + (row.ours.seconds if row.ours else 0)
        said = f"plain: {row.plain.error}" if row.ours is None else row.fault or row.ours.asked
        print(f"{row.name} ({seconds:.0f} s): {said}", flush=True)
        if arguments.output is not None:
            write_whole(arguments.output, json.dumps([asdict(each) for each in rows], indent=1))
    print(summary(rows))


def summary(rows: Sequence[Row]) -> str:
    """The rows in one sentence."""
    trained = [each for each in rows if each.ours is not None]
    planned = [each for each in trained if each.ours and each.ours.budget]
    return (
        f"{len(rows)} kinds: the plain step trained {len(trained)} of them, {len(planned)} were "
        f"planned, and {sum(bool(each.fault) for each in rows)} went wrong by a plan."
    )


if __name__ == "__main__":
    main()
