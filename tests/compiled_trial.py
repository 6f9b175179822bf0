"""Train a small net that XLA compiles, plainly and by a plan, in a process of its own.

    XLA_FLAGS=… python -m tests.compiled_trial

The last line that it prints holds, in JSON, how many variables differ in any bit.
"""

from __future__ import annotations

import json

from checkmate_tf.doctor.steps import compare


def main() -> None:
    """Compare them, and print the figures."""
    seen = compare(32, compiled=True, time_limit=5, share=0.3)
    assert seen.plan is not None
    figures = {
        "different": seen.different,
        "variables": seen.variables,
        "distance": seen.distance,
        "repeats": seen.repeats,
        "recomputations": len(seen.plan.schedule) - len(seen.plan.graph),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
