"""The paper's parts in their small form, beside what is published or known otherwise."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("keras")

from experiments.paper.__main__ import main
from solvers.graph.layer_graphs import unit_chain, vgg19
from tests.brute_force import cheapest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paper")
    assert main(["--quick", "--output", str(folder)]) == 0
    return folder


def rows(results: Path, name: str, **known: str) -> list[dict[str, str]]:
    with (results / f"{name}.csv").open() as file:
        found = list(csv.DictReader(file))
    return [row for row in found if all(row[key] == value for key, value in known.items())]


def test_networks_are_those_of_the_paper(results: Path) -> None:
    (vgg,) = rows(results, "networks", network="VGG19")
    assert (vgg["nodes"], vgg["edges"]) == ("51", "99")
    assert (vgg["MACs of a step"], vgg["fixed bytes"]) == ("58896187392", "1149337920")
    assert vgg["bytes, all kept"] == "81723296"
    (unet,) = rows(results, "networks", network="U-Net")
    assert (unet["nodes"], unet["edges"]) == ("71", "148")  # the authors' own graph


def test_largest_batches_of_vgg19_are_the_published_ones(results: Path) -> None:
    batches = {row["strategy"]: row for row in rows(results, "fig6", network="VGG19")}
    published = {
        "checkpoint all": "167",
        "AP √n": "197",
        "linearized greedy": "266",
        "optimum": "289",
    }
    assert {each: batches[each]["paper's accounting"] for each in published} == published
    assert batches["optimum"]["proved"] == "yes"
    assert int(batches["checkpoint all"]["counted once"]) > 167


def test_the_gaps_of_the_chain_are_the_published_ones(results: Path) -> None:
    for form, gap in (("(9) partitioned", 1.18), ("(1) unpartitioned", 21.56)):
        (row,) = rows(results, "appendix", chain="8 layers", form=form)
        assert float(row["optimum"]) == 26
        assert float(row["gap"]) == pytest.approx(gap, abs=0.005)


def test_no_strategy_is_better_than_the_optimum_and_none_below_the_bound(results: Path) -> None:
    ratios = [float(row["ratio"]) for row in rows(results, "table2") if row["ratio"]]
    assert ratios
    assert min(ratios) >= 1
    for row in rows(results, "fig5"):
        assert float(row["bound"]) <= float(row["optimum"]) + 1e-6
        for strategy in ("AP √n", "AP greedy", "LP rounding"):
            if row[strategy]:
                assert float(row[strategy]) >= float(row["bound"]) - 1e-6


def test_schedules_of_vgg19_cost_what_the_paper_says(results: Path) -> None:
    schedules = {row["strategy"]: row for row in rows(results, "fig7")}
    one_pass = 58_896_187_392
    for strategy, cost in (("AP √n", 72_512_667_648), ("last node", 389_852_987_392)):
        told = float(schedules[strategy]["cost over one pass"])
        assert told == pytest.approx(cost / one_pass, rel=1e-5)
    assert schedules["checkpoint all"]["computations"] == "51"


def test_every_form_of_a_segmentation_is_right(results: Path) -> None:
    equal = rows(results, "chains_equal")
    assert len(equal) == 5
    for row in equal:
        assert int(row["short chains"]) == int(row["equal to brute force"]) > 0
        assert row["long chains"] == row["equal"]
    least = {
        (row["form"], row["layers"]): row["least, MB"] for row in rows(results, "chains_times")
    }
    for fast, direct in (
        ("revised, O(n)", "revised, O(n²)"),
        ("sum, fewer caps", "sum, O(n³)"),
    ):
        layers = [each for form, each in least if form == direct]
        assert [least[fast, each] for each in layers] == [least[direct, each] for each in layers]


def test_each_segmentation_is_the_least_by_its_own_objective(results: Path) -> None:
    for network in ("VGG19", "AlexNet", "U-Net, flat"):
        for images in ("ImageNet", "tiny-ImageNet"):
            found = rows(results, "chains", network=network, images=images)
            for objective in ("sum", "traced", "revised"):
                values = {row["checkpoints"]: float(row[objective]) for row in found}
                assert min(values.values()) == values[objective] < values["keep all"]
    (kept,) = rows(results, "chains", network="VGG19", images="ImageNet", checkpoints="keep all")
    assert float(kept["sum"]) == pytest.approx(
        sum(node.memory for node in vgg19().nodes[:25]) / 1e6, rel=1e-5
    )


def test_solvers_that_prove_the_same_question_agree(results: Path) -> None:
    truth = cheapest(unit_chain(8), 4)
    found = rows(results, "solve_time", family="unit chains")
    assert len(found) == 7
    for row in found:
        assert row["reason"] if not row["cost"] else float(row["cost"]) * 17 >= (truth or 0) - 1e-4
        if row["proved"] == "yes":
            assert float(row["cost"]) * 17 == pytest.approx(truth, rel=1e-5)
    proved = [
        row for row in rows(results, "solve_time", family="networks") if row["proved"] == "yes"
    ]
    assert len({row["cost"] for row in proved}) <= 1


def test_executed_steps_keep_what_they_are_measured_by(results: Path) -> None:
    ways = {row["way"]: row for row in rows(results, "executed")}
    assert {row["outcome"] for row in ways.values()} == {"trained"}
    assert float(ways["ours"]["peak, MB"]) <= float(ways["ours"]["budget, MB"])
    assert float(ways["ours"]["peak, MB"]) < float(ways["plain"]["peak, MB"])
    assert float(ways["tf.recompute_grad"]["peak, MB"]) < float(ways["plain"]["peak, MB"])
    (row,) = rows(results, "least_memory")
    assert float(row["cut"]) == pytest.approx(
        1 - float(ways["ours"]["of plain's activation memory"]), abs=1e-3
    )
    # What a thread saw while a step ran cannot be more than the allocator's own peak, by much.
    for step in ("plain", "ours"):
        seen = max(int(row["bytes"]) for row in rows(results, "fig1", step=step))
        assert 0 < seen <= 1.5e6 * float(ways[step]["peak, MB"])


def test_more_images_train_in_the_same_bytes(results: Path) -> None:
    plain, ours = rows(results, "largest_batch")
    assert (plain["way"], ours["way"]) == ("plain", "ours")
    assert int(ours["largest batch"]) > int(plain["largest batch"]) > 0


def test_half_the_memory_has_the_same_curve(results: Path) -> None:
    (row,) = rows(results, "same_curve_summary")
    assert row["losses equal"] == row["steps"]
    assert row["same bits"] == "yes"
    losses = rows(results, "same_curve")
    assert [row["plain loss"] for row in losses] == [row["loss"] for row in losses]
    assert len({row["loss"] for row in losses}) > 1


def test_every_picture_is_drawn(results: Path) -> None:
    executed = ("fig1", "executed", "least_memory", "same_curve")
    for name in ("fig5", "fig6", "fig7", "fig8", "chains_times", "solve_time", *executed):
        assert (results / f"{name}.png").read_bytes().startswith(b"\x89PNG")
