"""What the paper's parts are made of: networks, rules, searches, and cells that are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("keras")

from experiments.paper.__main__ import PARTS, main
from experiments.paper.cells import Cell, answers
from experiments.paper.chain_networks import chain_networks
from experiments.paper.fig6 import largest_by_search
from experiments.paper.strategies import RULES, plans
from solvers import ComputationGraph, Node
from solvers.graph.layer_graphs import unit_chain, vgg19


def test_the_chains_are_the_known_networks() -> None:
    networks = chain_networks()
    ours, known = networks["VGG19", "ImageNet"], vgg19()
    assert [(node.cost, node.memory) for node in ours.nodes] == [
        (node.cost, node.memory) for node in known.nodes
    ]
    assert ours.fixed_bytes == known.fixed_bytes
    assert networks["AlexNet", "ImageNet"].fixed_bytes == 8 * 61_100_840  # as in torchvision


def test_the_plans_of_chains_are_the_known_ones() -> None:
    # 8 layers: keeping all costs 17 and peaks at 10, √n 21 and 7, the last node 53 and 3.
    known = {"checkpoint_all": (17, 10), "ap_sqrt": (21, 7), "checkpoint_last": (53, 3)}
    for rule, (cost, peak) in known.items():
        (plan,) = plans(unit_chain(8), rule)
        assert (plan["cost"], plan["matrices"]) == (cost, peak)
    assert set(known) < set(RULES)


def test_the_search_ends_between_a_batch_that_fits_and_one_that_cannot() -> None:
    graph = vgg19()
    assert largest_by_search(graph, 10.0) == {"largest": 289, "matrices": 289, "impossible": 290}
    # One node that takes 3 GB an image: five images fit, whatever is kept.
    large = ComputationGraph((Node("a", 1, 3_000_000_000),))
    assert largest_by_search(large, 10.0) == {"largest": 5, "matrices": 5, "impossible": 6}


def test_what_is_answered_is_not_asked_again(tmp_path: Path) -> None:
    first, second = (Cell(f"{each}", pow, {"base": each, "exp": 2}) for each in (2, 3))
    assert answers([first, second], tmp_path) == [4, 9]
    kept = tmp_path / first.file_name
    kept.write_text('{"answer": 5}')
    (tmp_path / second.file_name).unlink()
    assert answers([first, second], tmp_path) == [5, 9]
    assert Cell("2", pow, {"base": 2, "exp": 3}).file_name != first.file_name


def _fail_at(number: int) -> int:
    if number == 3:
        raise KeyboardInterrupt
    return number


def test_ctrl_c_loses_one_cell(tmp_path: Path) -> None:
    cells = [Cell(f"{each}", _fail_at, {"number": each}) for each in range(1, 5)]
    with pytest.raises(KeyboardInterrupt):
        answers(cells, tmp_path)
    assert {each.name.split("-")[0] for each in tmp_path.iterdir()} == {"1", "2"}


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["fig9"])
    told = capsys.readouterr().err
    assert all(part in told for part in PARTS)
