"""What a TensorFlow user has today to train in less memory, each as a model and its step.

Each takes a workload and an image side, and gives a model (compiled, with its optimizer slots) and
a step that trains it on one batch: a function from (inputs, labels) to Keras' logs.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

from checkmate_tf.workloads.models import Workload, compile_model, compiled

Step = Callable[[Any], Any]
Maker = Callable[[Workload, int], tuple[Any, Step]]

_SCOPE = "recomputed"


def plain(workload: Workload, side: int) -> tuple[Any, Step]:
    """The step as Keras has it."""
    import tensorflow as tf

    model = compiled(workload, side)
    return model, tf.function(model.train_step, jit_compile=False)


def recompute_grad(workload: Workload, side: int) -> tuple[Any, Step]:
    """`tf.recompute_grad` on √n blocks of the model's layers, all but the last."""
    import tensorflow as tf

    model = compile_model(in_blocks(workload.build(side)), workload.kind)
    return model, tf.function(model.train_step, jit_compile=False)


def in_blocks(model: Any) -> Any:
    """The same functional model, with the same layers, as √n blocks that are recomputed.

    It is cut where the fewest bytes go from one side to the other: on a chain between any two
    layers, in a network with branches at its articulation points, where these are near. The last
    block is not recomputed, since its gradients are needed at once.
    """
    import keras
    import tensorflow as tf

    operations = [each for each in model.operations if type(each).__name__ != "InputLayer"]
    borders = _borders(model.inputs, operations)
    blocks = [keras.Model(inputs, outputs) for inputs, outputs in borders]

    class Blocks(keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(name=f"{model.name}_in_blocks")
            self.model = model  # its layers and weights

        def call(self, inputs: Any, training: bool = False) -> Any:
            values = {id(model.inputs[0]): inputs}
            for place, block in enumerate(blocks):
                ends = borders[place]
                run = functools.partial(_run, block, training)
                given = [values[id(each)] for each in ends[0]]
                wrapped = place < len(blocks) - 1 and all(each.dtype.is_floating for each in given)
                results = tf.recompute_grad(run)(*given) if wrapped else run(*given)
                values.update(zip(map(id, ends[1]), results, strict=True))
            return values[id(model.outputs[0])]

    return Blocks()


def _run(block: Any, training: bool, *inputs: Any) -> tuple[Any, ...]:
    given = list(inputs) if len(inputs) > 1 else inputs[0]
    results = block(given, training=training)
    return tuple(results) if isinstance(results, list | tuple) else (results,)


def _borders(inputs: list[Any], operations: list[Any]) -> list[tuple[list[Any], list[Any]]]:
    """What goes into every block, and what it makes that is read after it."""
    from profiles.tensorflow_internals import calls_of

    made = {id(each): -1 for each in inputs}
    tensors = {id(each): each for each in inputs}
    last = dict.fromkeys(made, -1)
    for place, operation in enumerate(operations):
        for node in calls_of(operation):
            for tensor in node.input_tensors:
                last[id(tensor)] = place
            for tensor in node.output_tensors:
                made[id(tensor)], tensors[id(tensor)] = place, tensor
                last.setdefault(id(tensor), len(operations))
    crossing = [
        sum(_elements(tensors[each]) for each in made if made[each] <= place < last.get(each, -1))
        for place in range(len(operations))
    ]
    cuts = _cuts(crossing)
    borders = []
    for start, end in zip([-1, *cuts], [*cuts, len(operations) - 1], strict=True):
        inside = range(start + 1, end + 1)
        read = {
            id(tensor): tensor
            for place in inside
            for node in calls_of(operations[place])
            for tensor in node.input_tensors
            if made[id(tensor)] <= start
        }
        kept = [tensors[each] for each in made if made[each] in inside and last[each] > end]
        borders.append((list(read.values()), kept))
    return borders


def _cuts(crossing: list[int]) -> list[int]:
    """√n − 1 places, each the one with the least bytes crossing near an even distance.

    Example:
        >>> _cuts([5, 5, 1, 5, 5, 5, 1, 5, 5])
        [2, 6]
    """
    count = max(2, round(math.sqrt(len(crossing))))
    length = len(crossing) / count
    cuts: list[int] = []
    for number in range(1, count):
        middle = number * length - 1
        near = range(
            max(cuts[-1] + 1 if cuts else 0, math.ceil(middle - length / 2)),
            min(len(crossing) - 1, math.floor(middle + length / 2) + 1),
        )
        if near:
            cuts.append(min(near, key=lambda each: (crossing[each], abs(each - middle))))
    return cuts


def _elements(tensor: Any) -> int:
    return math.prod(each for each in tensor.shape if each is not None)


def remat_scope(mode: str) -> Maker:
    """Layers made within `keras.RematScope`.

    Mode "list_of_layers" names those whose call has no argument `training`.
    """

    def make(workload: Workload, side: int) -> tuple[Any, Step]:
        import keras
        import tensorflow as tf

        options = {}
        if mode == "list_of_layers":
            layers = workload.build(side).layers
            options["layer_names"] = [
                each.name
                for each in layers
                if "training" not in inspect.signature(each.call).parameters
                and type(each).__name__ != "InputLayer"
            ]
            keras.backend.clear_session()  # so that the layers get these names again
            keras.utils.set_random_seed(0)
        with keras.RematScope(mode=mode, **options):
            model = compiled(workload, side)

        def step(data: Any) -> Any:
            with keras.RematScope(mode=mode, **options):
                return model.train_step(data)

        return model, tf.function(step, jit_compile=False)

    return make


def grappler(setting: str) -> Maker:
    """Grappler's memory optimizer: "RECOMPUTATION_HEURISTICS", or "HEURISTICS" with its others.

    There is no public option for it in TensorFlow 2. By default it looks for gradients under a name
    that they don't have any more; here it is told the right one.
    """

    def make(workload: Workload, side: int) -> tuple[Any, Step]:
        import tensorflow as tf

        from profiles.tensorflow_internals import optimize_memory

        optimize_memory(setting, f"{_SCOPE}/gradient_tape/")
        model = compiled(workload, side)

        def step(data: Any) -> Any:
            with tf.name_scope(_SCOPE):
                return model.train_step(data)

        return model, tf.function(step, jit_compile=False)

    return make


def accumulation(parts: int) -> Maker:
    """Keras' own accumulation of gradients: the batch in equal parts, one after the other."""

    def make(workload: Workload, side: int) -> tuple[Any, Step]:
        import tensorflow as tf

        model = compile_model(
            workload.build(side), workload.kind, gradient_accumulation_steps=parts
        )
        one = tf.function(model.train_step, jit_compile=False)

        def step(data: Any) -> Any:
            logs: Any = None
            size = len(data[0]) // parts
            for part in range(parts):
                logs = one(tuple(each[part * size : (part + 1) * size] for each in data))
            return logs

        return model, step

    return make


ALTERNATIVES: dict[str, Maker] = {
    "plain": plain,
    "tf.recompute_grad": recompute_grad,
    "RematScope full": remat_scope("full"),
    "RematScope activations": remat_scope("activations"),
    "RematScope larger_than": remat_scope("larger_than"),
    "RematScope list_of_layers": remat_scope("list_of_layers"),
    "Grappler recomputation": grappler("RECOMPUTATION_HEURISTICS"),
    "Grappler all heuristics": grappler("HEURISTICS"),
    "accumulation, 2 parts": accumulation(2),
    "accumulation, 4 parts": accumulation(4),
}
"""By the names of the tables."""

SAME_BITS = ("tf.recompute_grad", "RematScope activations", "RematScope list_of_layers")
"""Those that ought to compute what the plain step computes."""
