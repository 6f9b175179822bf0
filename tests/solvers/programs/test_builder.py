import numpy as np

from solvers.programs.builder import ONE, ZERO, LinearBuilder


def test_constants_go_to_the_sides_and_zeros_away() -> None:
    build = LinearBuilder()
    x, y = build.column(cost=3.0), build.column(integer=True)
    build.row((y, ONE, ZERO, x), (2.0, 5.0, 7.0, 0.0), lower=1.0, upper=9.0)
    model = build.model()
    assert model.matrix.toarray().tolist() == [[0.0, 2.0]]
    assert (model.row_lower.tolist(), model.row_upper.tolist()) == ([-4.0], [4.0])
    assert model.objective.tolist() == [3.0, 0.0]
    assert model.integer.tolist() == [False, True]


def test_rows_that_always_hold_are_left_out() -> None:
    build = LinearBuilder()
    x, y = build.binaries(np.zeros(2))
    build.at_most((x, y), (1.0, -1.0), 1.0)  # holds even for x = 1, y = 0
    build.at_most((ZERO, ONE), (1.0, 1.0), 1.0)
    build.at_most((y, x), (1.0, 1.0), 1.0)
    build.at_most((ONE,), (1.0,), 0.0)  # never holds
    model = build.model()
    assert model.matrix.toarray().tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert model.row_upper.tolist() == [1.0, -1.0]
    assert model.integer.all()
    assert model.matrix.has_sorted_indices
