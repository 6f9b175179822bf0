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


TRIAL = (sys.executable, "-m", "experiments.coverage.gpu_trial")

COMPUTE_NOTHING = {"Const", "Identity", "NoOp", "_Arg", "_Retval", "_Send", "_Recv"}
"""Types of operations whose places are no matter; what is copied is looked at by itself."""

_BY_VALUES = {"Where", "TensorListGetItem"}
"""Types of operations that are told by values how much there is, or which element is meant."""

OVER = {
    "leanest-plan-over-budget", "no-plan-saves-memory",
    "over-budget-no-leaner-plan", "over-budget-plan-kept",
}  # fmt: skip
"""Codes of the lines by which a step over its budget is said."""


@dataclass(frozen=True)
class Trained:
    """What two trainings on a GPU have shown.

    Attributes:
        error: what came instead; "" for nothing.
        places: how many operations of the step ran where: type, then device, then number.
        copies: how many values of the step are copied between the host and the GPU: where to, then
            the type of the operation that they come from, then number.
        peak: bytes that the GPU's allocator held at most in the second training.
        asked: the budget that was asked for and planned; "unchanged" where there is no plan.
        budget: bytes, of the plan; 0 where there is none.
        messages: what was warned of, and the plan's notes.
        codes: of the warnings.
        seconds: that all took.
    """

    error: str = ""
    places: dict[str, dict[str, int]] = field(default_factory=dict)
    copies: dict[str, dict[str, int]] = field(default_factory=dict)
    peak: int = 0
    asked: str = ""
    budget: int = 0
    messages: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Row:
    """What came out of a kind; `ours` is None where the plain step has not trained."""

    name: str
    plain: Trained
    ours: Trained | None = None

    @property
    def depends_on_values(self) -> bool:
        """Whether shapes or places do: where values are garbage, any step may fail by chance."""
        return not _BY_VALUES.isdisjoint(self.plain.places)

    @property
    def is_over(self) -> bool:
        """Whether a step held more than its budget."""
        return self.ours is not None and self.ours.peak > self.ours.budget > 0

    @property
    def fault(self) -> str:
        """What went wrong by a plan and not without it; "" for nothing."""
        if self.ours is None:
            return ""
        if self.ours.error:
            return self.ours.error
        places = self.ours.places.items()
        moved = _new({k: v for k, v in places if k not in COMPUTE_NOTHING}, self.plain.places)
        if moved:
            return f"runs elsewhere than in the plain step: {moved}"
        # That an operation has run is told to another device by sending a constant.
        there = {device: {**each, "Const": 0} for device, each in self.plain.copies.items()}
        copied = _new(self.ours.copies, there)
        if copied:
            return f"is copied, and is not in the plain step: {copied}"
        # The least that was found is no promise.
        if self.is_over and self.ours.asked != "min" and not OVER.intersection(self.ours.codes):
            return f"held {self.ours.peak} bytes of {self.ours.budget}, and no line says so"
        return ""


def _new(ours: dict[str, dict[str, int]], plain: dict[str, dict[str, int]]) -> str:
    """Which pairs of names are in `ours` only; what `plain` has no word about is no matter."""
    return ", ".join(
        f"{first}: {second}"
        for first, seconds in ours.items()
        for second in seconds
        if second not in plain.get(first, seconds)
    )


def try_kinds(names: Sequence[str], command: Sequence[str] = TRIAL) -> Iterator[Row]:
    """The rows of these kinds, as they come, from as few processes as it takes.

    Args:
        names: of the kinds.
        command: trains those that are named after it, and prints a line of JSON for each `Trained`.
    """
    left = list(names)
    while left:
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                [*command, *left], stdout=subprocess.PIPE, stderr=said, text=True
            )
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
        f"planned, {sum(each.is_over for each in trained)} of which held more than their budget, "
        f"and {sum(bool(each.fault) for each in rows)} went wrong by a plan."
    )


if __name__ == "__main__":
    main()
