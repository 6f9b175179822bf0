"""`checkmate-tf profiles`: list, merge and clear stored profiles."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Column, Table

from checkmate_tf.cli.arguments import SOLVED, table_console
from profiles.profile_files import read_profile, save_profile
from profiles.store import cache_folder, forget, profile_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """An action, and what it needs."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("list", help="devices, TensorFlow versions, files")
    merge = actions.add_parser("merge", help="several profiles of one device as one file")
    merge.add_argument("files", type=Path, nargs="+", metavar="FILE", help="later ones win")
    merge.add_argument("--output", type=Path, required=True, metavar="FILE")
    clear = actions.add_parser("clear", help="delete your own profiles; shipped ones stay")
    clear.add_argument("--device", metavar="NAME", help="as listed; all by default")


def run(arguments: argparse.Namespace) -> int:
    """Do what `arguments.action` says."""
    actions = {"list": _list, "merge": _merge, "clear": _clear}
    actions[arguments.action](arguments)
    return SOLVED


def _list(arguments: argparse.Namespace) -> None:
    columns = (Column("operations", justify="right"), Column("file", overflow="fold"))
    table = Table("device", Column("TensorFlow", no_wrap=True), *columns, box=None, pad_edge=False)
    for path in profile_files():
        profile = read_profile(path)
        table.add_row(profile.device, profile.tensorflow, str(len(profile.entries)), str(path))
    if table.row_count:
        table_console().print(table)
    else:
        print(f"no profiles, neither shipped nor in {cache_folder()}")


def _merge(arguments: argparse.Namespace) -> None:
    first, *others = map(read_profile, arguments.files)
    for other in others:
        first = first.merged(other)
    save_profile(first, arguments.output)
    print(f"{arguments.output}: {len(first.entries)} operations on {first.device}")


def _clear(arguments: argparse.Namespace) -> None:
    gone = forget(arguments.device)
    for path in gone:
        print(f"{path}: deleted")
    if not gone:
        print(f"nothing to delete in {cache_folder()}")
