from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvers import Budget, BudgetError, format_bytes, parse_budget
from tests.messages import raises


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4294967296, Budget(bytes=4294967296)),
        (1, Budget(bytes=1)),
        (np.int64(7), Budget(bytes=7)),
        ("4294967296", Budget(bytes=4294967296)),
        ("1e9", Budget(bytes=10**9)),
        ("9007199254740993", Budget(bytes=2**53 + 1)),  # no float is that number
        ("8388608.000000001 GiB", Budget(bytes=2**53 + 1)),
        (2**70, Budget(bytes=2**70)),
        ("4GiB", Budget(bytes=4 * 1024**3)),
        (" 1.5 gib ", Budget(bytes=3 * 1024**3 // 2)),
        ("512MB", Budget(bytes=512 * 10**6)),
        ("3kB", Budget(bytes=3000)),
        (".5KiB", Budget(bytes=512)),
        ("2TiB", Budget(bytes=2 * 1024**4)),
        ("12B", Budget(bytes=12)),
        ("500M", Budget(bytes=500 * 1024**2)),
        ("2 g", Budget(bytes=2 * 1024**3)),
        ("1.5T", Budget(bytes=3 * 1024**4 // 2)),
        ("2 GB", Budget(bytes=2 * 10**9)),
        (0.8, Budget(share=0.8)),
        (1.0, Budget(share=1.0)),
        (np.float32(0.5), Budget(share=0.5)),
        ("80%", Budget(share=0.8)),
        ("62.5 %", Budget(share=0.625)),
        ("150%", Budget(share=1.5)),
        (Budget(share=0.3), Budget(share=0.3)),
        ("min", Budget(least=True)),
        (" Device", Budget(device=True)),
        (" MIN ", Budget(least=True)),
    ],
)
def test_what_people_write(value: Any, expected: Budget) -> None:
    assert parse_budget(value) == expected


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0, "budget-not-positive"),
        (-5, "budget-not-positive"),
        (0.0, "budget-not-positive"),
        (math.nan, "budget-not-positive"),
        (math.inf, "budget-not-positive"),
        (10**400, "budget-not-positive"),
        ("1e308TiB", "budget-not-positive"),
        ("1e-323%", "budget-not-positive"),
        (1.5, "budget-share-above-one"),
        (True, "budget-not-a-size"),
        (None, "budget-not-a-size"),
        ([1], "budget-not-a-size"),
        ("", "budget-not-a-size"),
        ("lots", "budget-not-a-size"),
        ("4GiBs", "budget-not-a-size"),
        ("-4GiB", "budget-not-a-size"),
        ("4 000", "budget-not-a-size"),
        ("nan", "budget-not-a-size"),
        ("0%", "budget-not-positive"),
        ("0", "budget-not-positive"),
        ("0.5B", "budget-not-positive"),
        ("1e400GB", "budget-not-positive"),
        ("0.8", "budget-without-unit"),
        ("1.5", "budget-without-unit"),
    ],
)
def test_what_is_not_a_budget(value: Any, code: str) -> None:
    with raises(BudgetError, code, repr(value)):
        parse_budget(value)


def test_what_may_be_meant_by_a_number_without_a_unit() -> None:
    with raises(BudgetError, "budget-without-unit", "'150%'", "'1.5GiB'"):
        parse_budget("1.5")


@pytest.mark.parametrize(
    ("budget", "fixed", "peak", "size"),
    [
        ("1GB", 5, 10, 10**9),  # bytes stand for everything, whatever the peak
        (0.5, 0, 10, 5),
        (0.5, 100, 110, 105),  # a share is of what comes on top of the fixed bytes
        (0.5, 0, 11, 5),  # never more than the share
        ("100%", 7, 18, 18),
        ("29%", 0, 100, 29),  # 0.29 × 100 is 28.999… in floating point
        ("33.3%", 0, 1000, 333),  # 33.3 / 100 is less than 0.333
        (0.07, 3, 103, 10),
        ("150%", 10, 20, 25),
    ],
)
def test_in_bytes(budget: Any, fixed: int, peak: int, size: int) -> None:
    assert parse_budget(budget).in_bytes(fixed, peak) == size


@given(st.integers(1, 1000), st.integers(0, 10**15))
def test_a_share_in_tenths_of_a_percent_is_exact(thousandths: int, peak: int) -> None:
    assert parse_budget(thousandths / 1000).in_bytes(0, peak) == thousandths * peak // 1000


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (-1536, "-1.5 KiB"),
        (5 * 1024**2, "5.0 MiB"),
        (3288334336, "3.1 GiB"),
        (1024**4, "1.00 TiB"),
        (5000 * 1024**4, "5000.00 TiB"),
    ],
)
def test_format_bytes(size: float, text: str) -> None:
    assert format_bytes(size) == text


@given(st.integers(1, 10**13), st.integers(1, 10**13))
def test_sizes_that_are_compared_can_be_told_apart(one: int, other: int) -> None:
    first, second = format_bytes(one, other), format_bytes(other, one)
    is_seen = 50_000 * abs(one - other) > max(one, other)  # of six digits
    assert (first == second) <= (one == other or not is_seen)
    number, unit = first.split()
    scale = 1024 ** ["B", "KiB", "MiB", "GiB", "TiB"].index(unit)
    assert abs(float(number) * scale - one) <= max(abs(one - other) / 10 + 1, 0.05 * scale)


@pytest.mark.parametrize(
    ("size", "beside", "text"),
    [
        (1.29 * 1024**3, 1.21 * 1024**3, "1.29 GiB"),
        (1.21 * 1024**3, 1.29 * 1024**3, "1.21 GiB"),
        (1024**3, 1024**3 - 1024**2, "1024.0 MiB"),
        (4 * 1024**3, 5 * 1024, "4.0 GiB"),
        (1024**2, 1024**2, "1.0 MiB"),
        (900, 1000, "900 B"),
        (0, 1000, "0 B"),
    ],
)
def test_format_bytes_beside_another(size: float, beside: float, text: str) -> None:
    assert format_bytes(size, beside) == text
