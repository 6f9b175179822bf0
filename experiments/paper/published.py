"""What Jain et al. (MLSys 2020, arXiv 1910.02653) print, to put beside what is reached here.

Besides, the executed table of Feng and Huang (CVPR 2021).

Of figure 6 the paper and its artifact state the heights in `FIG6_PRINTED`; the others are quoted
without a source that could be checked.
"""

from __future__ import annotations

from dataclasses import dataclass

TABLE2: dict[str, dict[str, float | None]] = {
    "MobileNet": {"ap_sqrt": 1.14, "ap_greedy": 1.07, "griewank": 7.07, "rounding": 1.06},
    "VGG16": {"ap_sqrt": 1.28, "ap_greedy": 1.06, "griewank": 1.44, "rounding": 1.01},
    "VGG19": {"ap_sqrt": 1.54, "ap_greedy": 1.39, "griewank": 1.75, "rounding": 1.00},
    "U-Net": {"ap_sqrt": 1.27, "ap_greedy": 1.23, "griewank": None, "rounding": 1.03},
    "ResNet50": {"ap_sqrt": 1.20, "ap_greedy": 1.25, "griewank": None, "rounding": 1.05},
}
"""Ratio to the optimum, geometric mean over budgets (table 2)."""

FIG5_SPEEDUPS = {"linearized_greedy": 1.20, "linearized_sqrt": 1.38}
"""U-Net, batch 32, 16 GB: how many times as long as the optimum (section 6.3)."""

FIG6: dict[str, dict[str, int]] = {
    "U-Net": {"checkpoint_all": 16, "ap_sqrt": 18, "linearized_greedy": 35, "checkmate": 61},
    "FCN8": {"checkpoint_all": 29, "ap_sqrt": 29, "linearized_greedy": 51, "checkmate": 60},
    "SegNet": {"checkpoint_all": 21, "ap_sqrt": 33, "linearized_greedy": 43, "checkmate": 62},
    "VGG19": {"checkpoint_all": 167, "ap_sqrt": 197, "linearized_greedy": 266, "checkmate": 289},
    "ResNet50": {"checkpoint_all": 98, "ap_sqrt": 116, "linearized_greedy": 199, "checkmate": 225},
    "MobileNet": {
        "checkpoint_all": 215, "ap_sqrt": 452, "linearized_greedy": 640, "checkmate": 1105,
    },
}  # fmt: skip
"""Largest batch in 16 GB with at most one extra forward pass (figure 6)."""

FIG6_PRINTED = {
    ("U-Net", "checkmate"),
    ("MobileNet", "checkmate"),
    *(("VGG19", each) for each in FIG6["VGG19"]),
}
"""The bars of `FIG6` whose height the paper or its artifact states."""

FIG6_MOST = {"checkpoint_all": 5.1, "best": 1.73}
"""Checkmate's largest batch over that of keeping all, and over the best baseline, at most."""

GAPS = {"unpartitioned": 21.56, "partitioned": 1.18}
"""Integrality gaps of the 8-layer unit chain at budget 4 (appendix A)."""

SECONDS = {"unpartitioned": 9.4 * 3600, "partitioned": 0.23}
"""Seconds to solve the same (appendix A)."""


@dataclass(frozen=True)
class LeastMemory:
    """A row of Feng and Huang's table.

    Attributes:
        batch: images.
        plain, theirs: activation memory in MB (weights and runtime taken off).
        extra_time: over the plain step's.
    """

    batch: int
    plain: int
    theirs: int
    extra_time: float

    @property
    def cut(self) -> float:
        """By what share the activation memory is less."""
        return 1 - self.theirs / self.plain


FENG_HUANG = {
    "AlexNet": LeastMemory(1024, 4955, 3287, 0.34),
    "VGG11": LeastMemory(64, 3577, 2781, 0.34),
    "VGG13": LeastMemory(64, 5136, 3565, 0.33),
    "VGG16": LeastMemory(64, 5136, 3565, 0.32),
    "VGG19": LeastMemory(64, 5189, 3565, 0.33),
    "ResNet18": LeastMemory(256, 5635, 3677, 0.30),
    "ResNet34": LeastMemory(128, 4079, 1838, 0.35),
    "ResNet50": LeastMemory(64, 5323, 1973, 0.31),
    "ResNet101": LeastMemory(32, 3934, 1024, 0.35),
    "ResNet152": LeastMemory(16, 2767, 526, 0.37),
    "DenseNet121": LeastMemory(32, 4027, 898, 0.34),
    "DenseNet161": LeastMemory(16, 3751, 666, 0.36),
    "DenseNet169": LeastMemory(32, 4862, 897, 0.32),
    "DenseNet201": LeastMemory(16, 3146, 474, 0.53),
    "Inception v3": LeastMemory(32, 3074, 881, 0.29),
}
"""Executed by them in PyTorch on one RTX 2080 Ti, images of 224² (Inception v3: 300²)."""
