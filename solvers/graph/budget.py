"""Memory budgets as people write them: "4GiB", "80%", 0.8, 4294967296.

KB, MB, GB and TB are powers of 1000; KiB and so on, and K, M, G and T alone, are powers of 1024.
"""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Real

from solvers.errors import BudgetError

_UNITS = {
    unit: factor
    for letter, power in (("", 0), ("k", 1), ("m", 2), ("g", 3), ("t", 4))
    for unit, factor in (
        (f"{letter}b", 1000**power),
        (f"{letter}ib", 1024**power),
        (letter, 1024**power),
    )
}

_POWERS = ("B", "KiB", "MiB", "GiB", "TiB")

_NEAR = 2
"""Times: sizes that are so far apart have units of their own."""

_APART, _DIGITS = 5, 6
"""So much two sizes differ in the last digit, of so many after the point at most."""

_HOW = "give bytes (4294967296), a size ('4GiB', '512MB'), a share (0.8, '80%'), 'min', or 'device'"


@dataclass(frozen=True)
class Budget:
    """A memory budget: bytes, a share of what the unchanged step needs, the least, or the device's.

    Exactly one of the four is set.

    Attributes:
        bytes: everything on the device at any moment, `fixed_bytes` included.
        share: 0.8 is 80 % of what the unchanged step adds to `fixed_bytes`.
        least: whatever is the least that a search finds.
        device: whatever the device that trains can hold.
    """

    bytes: int | None = None
    share: float | None = None
    least: bool = False
    device: bool = False

    def in_bytes(self, fixed_bytes: int, peak: int) -> int:
        """The budget in bytes where the unchanged step peaks at `peak` bytes in all.

        Raises:
            BudgetError: it stands for the least, which has to be searched for first, or for what a
                device holds.
        """
        if self.device:
            raise BudgetError(
                "budget-of-a-device",
                "budget 'device' is known where a step trains: only rematerialize takes it; give "
                "bytes, like '16GiB', or a share",
            )
        if self.least:
            raise BudgetError(
                "budget-min-not-searched",
                "budget 'min' has to be searched for, which only solve and rematerialize do; "
                "ask `checkmate-tf solve GRAPH --budget min` and give the bytes that it finds",
            )
        if self.bytes is not None:
            return self.bytes
        assert self.share is not None
        # 29 % of 100 bytes is 29; in floating point it is 28.999….
        return fixed_bytes + math.floor(Fraction(str(float(self.share))) * (peak - fixed_bytes))


def parse_budget(value: int | float | str | Budget) -> Budget:
    """Understand a budget.

    Raises:
        BudgetError: it is not a size, or not a positive one.

    Example:
        >>> parse_budget("4GiB").bytes
        4294967296
        >>> parse_budget("4G").bytes == parse_budget("4GiB").bytes > parse_budget("4GB").bytes
        True
        >>> parse_budget("80%").share
        0.8
        >>> parse_budget("min").least, parse_budget("device").device
        (True, True)
    """
    if isinstance(value, Budget):
        return value
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BudgetError("budget-not-a-size", f"budget {value!r} is not a size; {_HOW}")
    number = int(value) if isinstance(value, Integral) else float(value)
    # Comparisons with NaN are false; and, unlike isfinite, they take an int of any size.
    if not 0 < number <= sys.float_info.max:
        raise BudgetError("budget-not-positive", f"budget {value!r} is not a positive size; {_HOW}")
    if isinstance(number, int):
        return Budget(bytes=number)
    if number > 1:
        raise BudgetError(
            "budget-share-above-one",
            f"budget {value!r}: a float is a share between 0 and 1; write bytes as an int "
            "or as text with a unit, like '1.5GiB'",
        )
    return Budget(share=number)


def _parse_text(text: str) -> Budget:
    word = text.strip().lower()
    if word in ("min", "device"):
        return Budget(least=word == "min", device=word == "device")
    match = re.fullmatch(
        r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*(%|[a-z]*)\s*", text, re.IGNORECASE
    )
    unit = match.group(2).lower() if match else ""
    if match is None or (unit != "%" and unit not in _UNITS):
        raise BudgetError("budget-not-a-size", f"budget {text!r} is not a size; {_HOW}")
    number = float(match.group(1))
    if not 0 < number < math.inf:
        raise BudgetError("budget-not-positive", f"budget {text!r} is not a positive size; {_HOW}")
    # As a fraction: a float has not all bytes above 2**53, and 33.3 / 100 is less than 0.333.
    exact = Fraction(match.group(1))
    size = exact / 100 if unit == "%" else exact * _UNITS[unit]
    if unit == "" and size.denominator > 1:
        raise BudgetError(
            "budget-without-unit",
            f"budget {text!r} has no unit; write a share as '{100 * number:g}%' or a size like "
            f"'{number:g}GiB'",
        )
    if (unit == "%" and not float(size)) or (unit != "%" and not 1 <= size <= sys.float_info.max):
        raise BudgetError("budget-not-positive", f"budget {text!r} is not a positive size; {_HOW}")
    if unit == "%":
        return Budget(share=float(size))
    return Budget(bytes=math.floor(size))


def share_meant(budget: Budget) -> str:
    """A question for someone whose budget of so few bytes does not do; "" if it is no such.

    Example:
        >>> share_meant(parse_budget("80"))
        "did you mean '80%'?"
    """
    few = budget.bytes is not None and budget.bytes <= 100
    return f"did you mean '{budget.bytes}%'?" if few else ""


def format_bytes(size: float, beside: float | None = None) -> str:
    """A size as a person reads it.

    Args:
        size: in bytes.
        beside: a size in the same sentence that it is compared with: in its unit, and with as many
            digits as tell the two apart.

    Example:
        >>> format_bytes(1536)
        '1.5 KiB'
        >>> format_bytes(1024**3, 1000 * 1024**2), format_bytes(1000 * 1024**2, 1024**3)
        ('1024.0 MiB', '1000.0 MiB')
        >>> format_bytes(1.26 * 1024**3, 1.25 * 1024**3), format_bytes(1.25 * 1024**3)
        ('1.260 GiB', '1.2 GiB')
    """
    is_near = beside is not None and 0 < size < _NEAR * beside and 0 < beside < _NEAR * size
    power = _power(min(size, beside) if beside is not None and is_near else abs(size))
    if not power:
        return f"{size:.0f} B"
    digits = 2 if power == len(_POWERS) - 1 else 1
    if beside is not None and is_near and size != beside:
        apart = abs(size - beside) / 1024**power
        while apart * 10**digits < _APART and digits < _DIGITS:
            digits += 1
    return f"{size / 1024**power:.{digits}f} {_POWERS[power]}"


def _power(size: float) -> int:
    """Of 1024, the largest that is no more than `size`, and has a name."""
    return next((each for each in range(len(_POWERS) - 1, 0, -1) if size >= 1024**each), 0)
