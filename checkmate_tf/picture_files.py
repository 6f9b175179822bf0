"""Pictures in notebooks, and in files, whole or not at all."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from solvers.errors import CheckmateError
from solvers.graph.files import write_whole

_NOTEBOOK_DPI = 80
"""A notebook keeps what it shows."""


class Picture(Figure):
    """A figure that a notebook shows where it is the last line of a cell, without `pyplot`."""

    def png(self) -> bytes:
        """The contents of a PNG file, of a size for notebooks."""
        contents = BytesIO()
        self.savefig(contents, format="png", dpi=_NOTEBOOK_DPI)
        return contents.getvalue()

    _repr_png_ = png


def as_text(name: str) -> str:
    """A name for a picture: what is between dollars in it is no formula.

    Example:
        >>> print(as_text("$1 net, $2 net"))
        \\$1 net, \\$2 net
    """
    return name.replace("$", r"\$")


def check_format(path: str | Path) -> str:
    """The format that the suffix of `path` says.

    Raises:
        CheckmateError: there is no such format.
    """
    kind = Path(path).suffix[1:].lower()
    if kind not in FigureCanvasBase.get_supported_filetypes():
        raise CheckmateError(
            "picture-format-unknown", f"{path}: a picture's file ends in .png, .pdf or .svg"
        )
    return kind


def write_picture(figure: Figure, path: str | Path) -> None:
    """Write a picture, in the format that the suffix of `path` says.

    Raises:
        CheckmateError: there is no such format, or the file can't be written.
    """
    kind = check_format(path)
    contents = BytesIO()
    figure.savefig(contents, format=kind, dpi=120)
    write_whole(path, contents.getvalue())
