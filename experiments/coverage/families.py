"""Kinds by what their memory depends on, so that predicted peaks can be judged family by family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table

FAMILIES: dict[str, tuple[str, ...]] = {
    "grouped convolutions": ("grouped convolution",),
    "transposed convolutions": (
        "transposed convolution",
        "1-D transposed convolution",
        "adversarial, both in one step",
        "DCGAN",
        "variational autoencoder",
    ),
    "depthwise convolutions": (
        "depthwise convolution",
        "separable convolution",
        "1-D separable convolution",
        "MobileNetV3Small",
    ),
    "3-D convolutions": ("3-D convolution", "3-D pooling"),
    "LSTM and GRU": (
        "LSTM",
        "GRU",
        "simple RNN",
        "bidirectional LSTM",
        "LSTM, unrolled",
        "RNN of cells with dropout",
        "convolutional LSTM",
        "stateful recurrent layers",
        "padded texts, bidirectional",
        "translation with attention in a loop",
        "state carried in variables",
    ),
    "sparse embeddings": ("tied embeddings", "time-distributed dense", "recommendations"),
    "attention": (
        "attention",
        "grouped-query attention",
        "additive attention",
        "dot-product attention",
        "EinsumDense",
        "einsum",
    ),
    "images resized or augmented": (
        "resizing",
        "image resizing",
        "up-sampling, bilinear",
        "random flips",
        "random rotations",
        "random zooms",
        "random contrast",
        "random brightness",
        "random translations",
    ),
    "Fourier transforms": ("Fourier transform", "spectra at several windows"),
    "rows that data choose": (
        "tf.unique",
        "tf.boolean_mask",
        "ragged tensors inside",
        "sparse tensors inside",
        "graph network",
        "boxes",
        "mixture of experts",
        "strings and ragged texts",
    ),
    "sort and top-k": ("sort", "top-k"),
    "while loops": (
        "tf.while_loop",
        "autograph loop with a TensorArray",
        "loop of unknown length",
        "tf.scan",
        "tf.map_fn",
    ),
}
"""The kinds of which the model of memory has most to tell."""

REST = "all others"


def family_of(kind: str) -> str:
    """The family that a kind belongs to.

    Example:
        >>> family_of("top-k"), family_of("dropout")
        ('sort and top-k', 'all others')
    """
    return next((family for family, kinds in FAMILIES.items() if kind in kinds), REST)


def table_of_families(
    errors: Mapping[str, float], over: Iterable[str], names: Sequence[str], near: float
) -> Table:
    """How many peaks were predicted well, for each family.

    Args:
        errors: of a kind that was planned: predicted over measured peak, less 1.
        over: kinds that held more than their budget.
        names: kinds that were tried.
        near: an error that is small.
    """
    table = Table(title="Predicted peaks", box=None, pad_edge=False)
    for heading in ("family", "kinds", "planned", "over", f"within {100 * near:g} %", "off by"):
        table.add_column(heading, justify="left" if heading == "family" else "right")
    beyond = set(over)
    for family in (*FAMILIES, REST):
        tried = [each for each in names if family_of(each) == family]
        planned = [each for each in tried if each in errors]
        found = [errors[each] for each in planned]
        if tried:
            table.add_row(
                family,
                str(len(tried)),
                str(len(planned)),
                str(sum(each in beyond for each in planned)),
                str(sum(abs(each) <= near for each in found)),
                f"{100 * min(found):+.1f} … {100 * max(found):+.1f} %" if found else "",
            )
    return table
