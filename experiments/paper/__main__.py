"""The paper's tables and figures with one command; what was done before is not done again.

    python -m experiments.paper                     # all parts
    python -m experiments.paper fig5 --graphs DIR   # one, also on the authors' profiles
    python -m experiments.paper --quick             # a small form of each, some minutes

The paper's own parts are of layer graphs, and nothing is trained; Keras builds the networks, once.
The parts from fig1 on train real Keras models, each in a process of its own, one at a time.
`--jobs 8` answers eight questions of the other parts at a time, `--backend dask` through joblib's
backend of that name, with the client that is there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.paper import (
    appendix,
    chains,
    fig5,
    fig6,
    fig7,
    fig8,
    networks,
    solve_time,
    table2,
)
from experiments.paper.executed import budgets, fig1, largest_batch, least_memory, same_curve
from experiments.paper.settings import Settings

PARTS: dict[str, Callable[[Settings], None]] = {
    "networks": networks.run,
    "table2": table2.run,
    "fig5": fig5.run,
    "fig6": fig6.run,
    "fig7": fig7.run,
    "fig8": fig8.run,
    "appendix": appendix.run,
    "solve_time": solve_time.run,
    "chains": chains.run,
    "fig1": fig1.run,
    "executed": budgets.run,
    "least_memory": least_memory.run,
    "largest_batch": largest_batch.run,
    "same_curve": same_curve.run,
}

_RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; see the module."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="a small form of each part")
    parser.add_argument("--graphs", type=Path, metavar="FOLDER", help="the authors' profiles")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="for tables and pictures")
    parser.add_argument(
        "--time-limit", type=float, metavar="SECONDS", help="a question (30; quick: 5)"
    )
    parser.add_argument("--points", type=int, metavar="N", help="budgets of a curve (6; quick: 3)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="questions at a time")
    parser.add_argument("--backend", default="", metavar="NAME", help="of joblib, such as dask")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    quick = options.quick
    settings = Settings(
        output=options.output or (Path("results/paper") if quick else _RESULTS),
        quick=quick,
        time_limit=options.time_limit or (5.0 if quick else 30.0),
        points=options.points or (3 if quick else 6),
        jobs=options.jobs,
        backend=options.backend,
        graphs=options.graphs,
    )
    try:
        for name in options.parts or PARTS:
            PARTS[name](settings)
    except KeyboardInterrupt:
        settings.console.print("stopped; the same command goes on from here")
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
