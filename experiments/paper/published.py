"""What Jain et al. (MLSys 2020, arXiv 1910.02653) print, to put beside what is reached here.

Of figure 6 the paper and its artifact state the heights in `FIG6_PRINTED`; the others are quoted
without a source that could be checked.
"""

from __future__ import annotations

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
