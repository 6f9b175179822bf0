"""One step with and without a plan, by XLA's compiler for a GPU that is not here."""

from __future__ import annotations

from typing import Any

from experiments.xla.gpu_compiler import GpuMemory, memory_on_gpu, without_copies
from experiments.xla.measure import planned_step
from experiments.xla.steps import Row


def figures(row: Row, time_limit: float = 60.0) -> dict[str, Any]:
    """Temporary bytes on the GPU and on this machine's CPU; the plan was corrected by the latter.

    Raises:
        CheckmateError: the GPU's compiler refuses the step.
    """
    from profiles.measure.compilation import compiled_memory
    from profiles.tensorflow_internals import hlo_before_compilation

    step = planned_step(row, time_limit)

    def on_gpu(concrete: Any) -> GpuMemory:
        # TensorFlow without CUDA has no form of its own for a GPU where there are variables.
        module = without_copies(hlo_before_compilation(concrete, step.sizes, "CPU:0"))
        return memory_on_gpu(module.SerializeToString())

    plain = step.plain.get_concrete_function(step.data)
    planned = step.planned.get_concrete_function(step.data)
    return {
        "gpu_plain_temporary": on_gpu(plain).temporary,
        "gpu_temporary": on_gpu(planned).temporary,
        "plain_temporary": compiled_memory(plain, step.sizes).temporary,
        "temporary": compiled_memory(planned, step.sizes).temporary,
        "overhead": step.plan.overhead,
    }
