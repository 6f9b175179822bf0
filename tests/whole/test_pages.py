"""The code on the pages runs as it stands there; commands and links exist; the site builds.

Programs of several processes, on docs/distributed.md, have a test of their own.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf
from keras import layers

import checkmate_tf
import solvers
from checkmate_tf.cli.main import parser
from checkmate_tf.step import RematerializedStep
from tests.costs import sweep
from tests.dense_steps import QUICK, dense_model, loss_and_gradient, numbers, some_weights
from tests.graphs import SKIP
from tests.steps import random_batch

ROOT = Path(__file__).parents[2]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("experiments/**/*.md"))
}
Names = dict[str, Any]


def blocks(page: str) -> str:
    """All its Python, as one; a program is known by its file name in the first line."""
    found = re.findall(r"```python\n(?!# \w+\.py\n)(.*?)```", PAGES[page], re.DOTALL)
    return "\n".join(found)


def dense_names() -> Names:
    """A compiled model, a function, and what both are called with."""
    model = dense_model()
    model.compile("sgd", "mse", jit_compile=False)
    inner = loss_and_gradient(some_weights(), depth=24)
    images, labels = numbers(2048)
    return {
        "checkmate_tf": checkmate_tf,
        "keras": keras,
        "tf": tf,
        "model": model,
        "my_train_step": lambda images, labels: inner(images),
        "images": images,
        "labels": labels,
    }


def image_names() -> Names:
    """A compiled model of images, and a batch.

    No convolutions: what those need only while they run differs from processor to processor, and
    can be most of a small model's memory.
    """
    keras.utils.set_random_seed(1)
    inner = [layers.Dense(32, activation="relu") for _ in range(12)]
    model = keras.Sequential(
        [keras.Input((32, 32, 3)), *inner, layers.GlobalAveragePooling2D(), layers.Dense(10)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, jit_compile=False)
    images, labels = (each.numpy() for each in random_batch(32))
    return {**dense_names(), "model": model, "images": images, "labels": labels}


def loop_names() -> Names:
    """What a training loop of one's own has."""
    network = dense_model(depth=24)
    optimizer = keras.optimizers.Adam()
    optimizer.build(network.trainable_variables)
    return {
        **dense_names(),
        "network": network,
        "optimizer": optimizer,
        "loss_function": lambda labels, results: tf.reduce_mean(tf.square(labels - results)),
        "batches": [numbers(2048, seed) for seed in range(2)],
    }


def strategy_names() -> Names:
    """What a training loop under a strategy has."""
    names = loop_names()
    network, loss = names["network"], names["loss_function"]
    return {
        **names,
        "model": network,
        "strategy": tf.distribute.OneDeviceStrategy("CPU:0"),
        "loss_of": lambda batch: loss(batch[1], network(batch[0])),
    }


def kept_plan_names() -> Names:
    """A step that has a plan."""
    names = dense_names()
    names["step"] = checkmate_tf.rematerialize(names["my_train_step"], **QUICK)
    names["step"](names["images"], names["labels"])
    return names


def graph_names() -> Names:
    """A graph in a file."""
    SKIP.save("graph.json")
    return {}


def is_planned(names: Names) -> bool:
    """Whether `step` has a plan, and computed something."""
    assert isinstance(names["step"], RematerializedStep)
    assert tf.math.is_finite(names["loss"])
    return names["step"].plan is not None


def classifier_is_decorated(names: Names) -> bool:
    """Whether objects of the class have the budget, and the model has none any more."""
    assert isinstance(names["Classifier"]().train_step, RematerializedStep)
    return not isinstance(names["model"].train_step, RematerializedStep)


def trains_by_its_plan(names: Names) -> bool:
    """Whether the model has a plan, and trains."""
    assert isinstance(names["model"].train_step, RematerializedStep)
    history = names["model"].fit(names["images"][:8], names["labels"][:8], batch_size=8, verbose=0)
    return history.history["loss"][0] > 0


def trains_replicas(names: Names) -> bool:
    """Whether the loop under the strategy trains."""
    return bool(tf.math.is_finite(names["train"](numbers(64))))


def is_compiled(names: Names) -> bool:
    """Whether the compiled function runs by a plan."""
    loss, _ = names["train"](names["images"], names["labels"])
    return bool(tf.math.is_finite(loss)) and names["step"].plan is not None


def is_saved(names: Names) -> bool:
    """Whether the plan that was loaded is the one that was saved, and the picture is there."""
    assert names["plan"].schedule == checkmate_tf.Plan.load("plan.json").schedule
    return is_planned(names) and Path("plan.png").stat().st_size > 10_000


def is_registered(name: str) -> Callable[[Names], bool]:
    """Whether a solver of that name answers; it is forgotten afterwards."""

    def check(names: Names) -> bool:
        try:
            return solvers.solve(SKIP, 1.0, name).cost == sum(node.cost for node in SKIP.nodes)
        finally:
            solvers.api.SOLVERS.pop(name)

    return check


EXAMPLES: dict[str, tuple[Callable[[], Names], Callable[[Names], bool]]] = {
    "README.md": (dense_names, is_planned),
    "CONTRIBUTING.md": (dict, is_registered("keep_all")),
    "docs/budgets.md": (dense_names, is_planned),
    "docs/how-it-works.md": (dict, lambda names: names["number"] == 11),
    "docs/keras.md": (image_names, classifier_is_decorated),
    "docs/custom-loops.md": (loop_names, lambda names: names["train_step"].plan is not None),
    "docs/distributed.md": (strategy_names, trains_replicas),
    "docs/files.md": (dict, lambda names: names["graph"].fixed_bytes == 0),
    "docs/largest-batch.md": (image_names, trains_by_its_plan),
    "docs/messages.md": (dict, lambda names: names["told"] == "budget-without-unit"),
    "docs/plans.md": (kept_plan_names, is_saved),
    "docs/profiles.md": (dense_names, lambda names: isinstance(names["step"], RematerializedStep)),
    "docs/solvers.md": (graph_names, is_registered("mine")),
    "docs/tradeoff.md": (image_names, trains_by_its_plan),
    "docs/what-a-step-holds.md": (image_names, lambda names: names["found"].peak > 0),
    "docs/xla.md": (dense_names, is_compiled),
}
"""For each page what its code takes for granted, and what has come out at its end."""


def test_every_page_with_code_is_run():
    assert {page for page in PAGES if blocks(page)} == set(EXAMPLES)


SLOW = (
    "docs/custom-loops.md",
    "docs/largest-batch.md",
    "docs/tradeoff.md",
    "docs/what-a-step-holds.md",
)
"""Pages whose code plans several times, for seconds each."""


@pytest.mark.parametrize(
    "page", sweep(sorted(EXAMPLES, key=lambda page: page in SLOW), len(EXAMPLES) - len(SLOW))
)
def test_the_code_of(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    granted, came_out = EXAMPLES[page]
    names = granted()
    exec(compile(blocks(page), page, "exec"), names)
    assert came_out(names)


def commands(name: str) -> list[str]:
    """Lines of the pages that are such a command, without their comments."""
    lines = [line for page in PAGES.values() for line in page.splitlines()]
    return sorted({line.split("#")[0].strip() for line in lines if line.startswith(f"    {name} ")})


@pytest.mark.parametrize("line", commands("checkmate-tf"))
def test_the_command_line_knows(line):
    arguments = parser().parse_args(shlex.split(line)[1:])
    assert arguments.command == line.split()[1]


def test_modules_that_are_to_be_run_exist():
    named = {name for page in PAGES.values() for name in re.findall(r"python -m ([\w.]+)", page)}
    assert "experiments.paper" in named
    assert {name for name in named if importlib.util.find_spec(name) is None} == set()


def anchors(path: Path) -> set[str]:
    """What links call the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if target.startswith(("http", "#")):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


@pytest.mark.slow
def test_the_site_builds(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "docs", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    assert "rematerialize" in (tmp_path / "reference.html").read_text(encoding="utf-8")
