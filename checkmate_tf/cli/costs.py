"""`--costs`: a cost model, a stored profile by name, or a profile's file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from profiles.profile import Profile


def add_costs(parser: argparse.ArgumentParser) -> None:
    """What operations cost, on this device or on another one."""
    parser.add_argument(
        "--costs",
        default="roofline",
        metavar="MODEL|PROFILE",
        help="roofline (default), roofline:GPU (or CPU, TPU) for a device of another kind, flops, "
        "device or profile (measured on this device: its ceilings, or each operation), or a "
        "profile: its file, or its device or file name as `checkmate-tf profiles list` shows them",
    )
    parser.add_argument(
        "--other-device", action="store_true", help="take a profile though it is of another device"
    )


def cost_model(costs: str, other_device: bool) -> str | Profile:
    """What `--costs` stands for: the name of a cost model, or a profile.

    Raises:
        CheckmateError: there is no such thing, or it is the profile of another device and that
            was not asked for.
    """
    from checkmate_tf.graph.cost_models import check_cost_model, load_profile
    from profiles.store import named_file

    path = named_file(costs) or (Path(costs) if costs.endswith(".json") else None)
    if path is None:
        check_cost_model(costs)
        return costs
    return load_profile(path, other_device)
