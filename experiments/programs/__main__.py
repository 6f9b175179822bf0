"""Programs of Keras' own guides through `fit`, plainly and within a budget, batch by batch.

    python -m experiments.programs                      # goes on where it was stopped
    python -m experiments.programs --only "distillation" --shares 0.6
    python -m experiments.programs --show               # the tables of what is there

Each `fit` has a process of its own. `checkmate_tf.rematerialize(model, budget=share)` is all that
ours has besides; with `--say-batch` it gets `batch_size=` too. If it is refused and a budget is
named, a second process is given exactly that. Bits are compared in two more processes, with graph
rewrites off and without oneDNN.
"""

from __future__ import annotations

import argparse
import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from checkmate_tf.workloads.trial import trial_environment
from experiments.programs.rows import (
    Figures,
    Row,
    as_table,
    kept,
    key,
    messages,
    outcome,
    read_rows,
    row_of_ours,
    row_of_plain,
    same_bits,
    summary,
    write_rows,
)
from solvers.graph.files import read_json

OUTPUT = Path("results/programs.csv")
SECONDS = 600
"""A `fit` that takes longer is a row that says so."""

Run = Callable[..., Figures]
"""Runs one `fit`; takes the options of `run_trial`."""


def main(command_line: Sequence[str] | None = None) -> None:
    """Run what is missing in the CSV file; print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", nargs="+", metavar="PROGRAM", help="these, done or not")
    parser.add_argument("--shares", nargs="+", type=float, default=[0.6, 0.8])
    parser.add_argument("--one-dnn", nargs="+", type=int, default=[0], choices=[0, 1])
    parser.add_argument("--batch", type=int, help="examples in a batch, of all programs")
    parser.add_argument("--say-batch", action="store_true", help="give rematerialize batch_size=")
    parser.add_argument("--no-bits", action="store_true", help="memory alone")
    parser.add_argument("--show", action="store_true", help="what is there, nothing is run")
    parser.add_argument(
        "--list", action="store_true", help="names of all programs, and their pages"
    )
    parser.add_argument("--output", type=Path, metavar="FILE.csv", default=OUTPUT)
    arguments = parser.parse_args(command_line)
    from experiments.programs.catalogue import PROGRAMS  # TensorFlow comes with it

    if arguments.list:
        print("\n".join(f"{n}: https://keras.io/{p.page}" for n, p in PROGRAMS.items()))
        return
    unknown = sorted(set(arguments.only or ()) - set(PROGRAMS))
    if unknown:
        parser.error(f"no program is called {unknown[0]!r}; --list shows all")
    rows = {key(row): row for row in read_rows(arguments.output)}
    chosen = [
        (name, on, share, int(arguments.say_batch))
        for name in arguments.only or PROGRAMS
        for on in arguments.one_dnn
        for share in arguments.shares
    ]
    run = functools.partial(run_trial, batch=arguments.batch)
    plain = functools.cache(run)  # one for all shares
    chosen = [] if arguments.show else chosen
    for each in track(chosen, "training", console=Console(stderr=True), transient=True):
        if arguments.only or each not in rows:
            rows[each] = memory(run, plain, *each)
            write_rows(arguments.output, [row for _, row in sorted(rows.items())])
        name, one_dnn, share, said = each
        if not (arguments.no_bits or one_dnn or "bits" in rows[each]):
            rows[each]["bits"] = bits(run, plain, name, share, said)
            write_rows(arguments.output, [row for _, row in sorted(rows.items())])
    show(list(rows.values()), list(PROGRAMS))


def run_trial(program: str, one_dnn: bool = False, **options: Any) -> Figures:
    """The figures of one `fit`, from a process of its own.

    Args:
        program: its name.
        one_dnn: whether TensorFlow's oneDNN kernels are on.
        options: flags of `experiments.programs.trial`; None and False leave one out.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "experiments.programs.trial", program]
        for name, value in options.items():
            if value is not None and value is not False:
                flag = f"--{name.replace('_', '-')}"
                command += [flag] if value is True else [flag, str(value)]
        said = f"more than {SECONDS} s"
        try:
            ended = subprocess.run(
                [*command, "--output", str(output)],
                env=trial_environment(one_dnn=one_dnn),
                capture_output=True,
                text=True,
                check=False,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            return _ended("Timeout", said)
        if not ended.returncode:
            figures: Figures = read_json(output)
            return figures
        return _ended(f"Exit status {ended.returncode}", ended.stderr.strip()[-300:])


def _ended(error: str, said: str) -> Figures:
    """A process that wrote nothing."""
    return {
        "held": [], "peaks": [], "seconds": [], "logs": [], "digest": "", "warnings": [],
        "plan": None, "error": error, "refused": False, "said": said, "least": None,
    }  # fmt: skip


def memory(run: Run, run_plain: Run, program: str, one_dnn: int, share: float, said: int) -> Row:
    """The row of a program, but for its bits: two processes, or three.

    Args:
        run: runs a `fit`.
        run_plain: the same for the plain one, which may be a run that was there before.
        program, one_dnn, share, said: see `Row`.
    """
    row: Row = {"program": program, "one_dnn": one_dnn, "share": share, "said": said}
    plain = run_plain(program, one_dnn=bool(one_dnn))
    if plain["error"]:
        return row | {"outcome": "failed", "message": f"plain: {plain['error']}: {plain['said']}"}
    run_ours = functools.partial(run, program, one_dnn=bool(one_dnn), say_batch=bool(said))
    ours = run_ours(budget=share)
    row |= row_of_plain(plain, share) | row_of_ours(ours)
    least = ours["least"]
    if least:
        again = run_ours(budget=least)
        row |= {"named": least, "then": kept(again, least)}
        if again["peaks"][1:]:
            row["then_worst"] = max(again["peaks"][1:])
    return row


def bits(run: Run, run_plain: Run, program: str, share: float, said: int) -> str:
    """How bits compare, by two processes and sometimes more; the arguments are those of `memory`.

    Where the share is refused, the budget that is named then is taken.
    """
    run_ours = functools.partial(run, program, say_batch=bool(said), exact=True)
    ours = run_ours(budget=share)
    if ours["least"]:
        ours = run_ours(budget=ours["least"])
    if ours["error"]:
        return outcome(ours)
    if same_bits(run_plain(program, exact=True), ours):
        return "equal"
    once, twice = run_plain(program, exact=True), run(program, exact=True)
    return "unequal" if same_bits(once, twice) else "own"


def show(rows: list[Row], names: list[str]) -> None:
    """A table for each setting, with what was said, and a sentence."""
    settings = sorted({key(row)[1:] for row in rows})
    for setting in settings:
        on, share, said = setting
        shown = [row for row in rows if key(row)[1:] == setting]
        shown.sort(key=lambda row: names.index(row["program"]))
        title = f"{100 * share:.0f} %, oneDNN {'on' if on else 'off'}"
        Console(width=100).print(as_table(shown, title + (", batch_size= said" if said else "")))
        print("\n".join(messages(shown)))
        print(summary(shown), end="\n\n")


if __name__ == "__main__":
    main()
