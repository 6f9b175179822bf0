"""Every kind of train step that `experiments.coverage` lists, by a plan on a GPU.

Where the plain step trains, ours does: everything placed where the plain step has it, and within
its budget, or a line says that it is not. Values are not looked at.
"""

from __future__ import annotations

import pytest

from experiments.coverage.kinds import KINDS
from experiments.coverage.on_a_gpu import try_kinds
from tests.gpu import is_stand_in

PARTS = 10


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_kind_goes_wrong_by_a_plan(part):
    names = list(KINDS)[part::PARTS]
    rows = list(try_kinds(names))
    assert [each.name for each in rows] == names
    trained = [each for each in rows if each.ours is not None]
    by_chance = [
        each for each in trained if is_stand_in() and each.depends_on_values and each.ours.error
    ]
    assert not {each.name: each.fault for each in trained if each not in by_chance and each.fault}
    assert len(trained) > len(rows) / 2, {each.name: each.plain.error for each in rows}
