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
        metavar="MODEL|PROFILE",
        help="device (default) or profile, measured on this device: its ceilings, or each "
        "operation; roofline (default for a device that is not here), roofline:GPU (or CPU, TPU) "
        "for one of another kind, flops, or a profile: its file, or its device or file name as "
        "`checkmate-tf profiles list` shows them",
    )
    parser.add_argument(
        "--other-device", action="store_true", help="take a profile though it is of another device"
    )


def cost_model(costs: str | None, other_device: bool, elsewhere: bool = False) -> str | Profile:
    """What `--costs` stands for: the name of a cost model, or a profile.

    Args:
        costs: as given; None if it was not.
        other_device: take a profile of another device as well.
        elsewhere: the step is to run on a device that is not here.

    Raises:
        CheckmateError: there is no such thing, or it is the profile of another device and that
            was not asked for.
    """
    from checkmate_tf.graph.cost_models import check_cost_model, default_costs, load_profile
    from profiles.store import named_file

    if costs is None:
        return default_costs(elsewhere)

    path = named_file(costs) or (Path(costs) if costs.endswith(".json") else None)
    if path is None:
        check_cost_model(costs)
        return costs
    return load_profile(path, other_device)
