"""One step with and without a plan, by XLA's compiler for a GPU that is not here."""

from __future__ import annotations

from typing import Any

from experiments.xla.gpu_compiler import compile_for_gpu
from experiments.xla.layout_copies import layout_copies, most_at_once
from experiments.xla.measure import planned_step
from experiments.xla.steps import Row


def figures(row: Row, time_limit: float = 60.0) -> dict[str, Any]:
    """Bytes on the GPU, and on this machine's CPU: the plan was corrected by the latter.

    Raises:
        CheckmateError: the GPU's compiler refuses the step.
    """
    from profiles.measure.compilation import compiled_memory
    from profiles.tensorflow_internals import hlo_before_compilation

    step = planned_step(row, time_limit)

    def on_gpu(concrete: Any) -> dict[str, int]:
        # TensorFlow without CUDA has no form of its own for a GPU where there are variables.
        module = hlo_before_compilation(concrete, step.sizes, "CPU:0")
        memory, compiled = compile_for_gpu(module)
        copies = most_at_once(layout_copies(compiled))
        return {"temporary": memory.temporary, "layout_copies": copies}

    plain = step.plain.get_concrete_function(step.data)
    planned = step.planned.get_concrete_function(step.data)
    return {
        "gpu_plain": on_gpu(plain),
        "gpu_planned": on_gpu(planned),
        "plain_temporary": compiled_memory(plain, step.sizes).temporary,
        "temporary": compiled_memory(planned, step.sizes).temporary,
        "kept": step.plan.compiled_peak <= step.plan.budget,
        "overhead": step.plan.overhead,
    }
