import copy
import pickle

import pytest

from solvers import BudgetError, CheckmateError, CheckmateWarning, GraphError


@pytest.mark.parametrize(
    "told",
    [
        GraphError("graph-empty", "net: the graph has no nodes"),
        BudgetError("budget-too-small", "it takes more", least=7),
        CheckmateWarning("backend-replaced", "going on with HiGHS"),
    ],
)
def test_code_message_and_figures_come_through_copies_and_processes(
    told: CheckmateError | CheckmateWarning,
) -> None:
    for other in (copy.copy(told), copy.deepcopy(told), pickle.loads(pickle.dumps(told))):
        assert type(other) is type(told)
        assert (str(other), vars(other)) == (str(told), vars(told))
    assert told.args == (str(told),)  # as of any error, for those who look there
