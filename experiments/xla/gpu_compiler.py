"""What a step would take on an NVIDIA A100, by XLA's compiler for GPUs; no GPU or CUDA is needed.

    python -m experiments.xla.gpu_compiler MODULE COMPILED FILE

reads a serialized HloModuleProto, compiles it ahead of time, and writes the compiled one and what
it takes. The compiler comes in JAX's plugin for CUDA. It has a process of its own, beside the XLA
that is in TensorFlow. JAX has no public way to compile HLO for a device that is only described, so
that this uses private names of it: the extra "xla-gpu" names its release.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from solvers.errors import CheckmateError
from solvers.graph.files import read_json, write_whole

_TARGET = """
platform_name: "CUDA"
device_description_str: "NVIDIA A100-SXM4-80GB"
dnn_version_info { major: 9 minor: 8 }
gpu_device_info {
  cuda_compute_capability { major: 8 minor: 0 }
  core_count: 108
  fpus_per_core: 64
  clock_rate_ghz: 1.41
  device_memory_size: 85899345920
  memory_bandwidth: 2039000000000
  l2_cache_size: 41943040
  shared_memory_per_core: 167936
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 166912
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  threads_per_core_limit: 2048
  threads_per_block_limit: 1024
  threads_per_warp: 32
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
}
"""
"""A GpuTargetConfigProto: what XLA wants to know of the device and of cuDNN."""

_PACKAGES = ("jax", "jax_plugins.xla_cuda12")


class GpuCompilerMissingError(CheckmateError):
    """The packages that bring XLA's compiler for GPUs are not installed."""


@dataclass(frozen=True)
class GpuMemory:
    """Bytes of a function that is compiled for the GPU.

    Attributes:
        temporary: one block for all that is needed only while it runs; without the workspaces of
            cuDNN, which are chosen by trial on the device.
        arguments: of what it is given.
        outputs: of results, those included that take an argument's place.
    """

    temporary: int
    arguments: int
    outputs: int


def check_installed() -> None:
    """Raise `GpuCompilerMissingError` unless the compiler's packages are here."""
    if missing := [name for name in _PACKAGES if not _is_here(name)]:
        raise GpuCompilerMissingError(
            "package-missing",
            f"XLA's compiler for GPUs is not installed ({', '.join(missing)}): "
            "pip install '.[cpu,xla-gpu]'",
        )


def _is_here(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def without_copies(module: Any) -> Any:
    """A copy of an HloModuleProto whose copies are replaced by what they copy.

    TensorFlow copies the parameters that it returns, for which StableHLO has no operation. Which
    buffers results take is said elsewhere in the module.
    """
    result = type(module).FromString(module.SerializeToString())
    for computation in result.computations:
        sources = {
            each.id: each.operand_ids[0]
            for each in computation.instructions
            if each.opcode == "copy"
        }

        def source(number: int, sources: dict[int, int] = sources) -> int:
            while number in sources:
                number = sources[number]
            return number

        left = [each for each in computation.instructions if each.id not in sources]
        for each in left:
            each.operand_ids[:] = map(source, each.operand_ids)
            each.control_predecessor_ids[:] = map(source, each.control_predecessor_ids)
        computation.root_id = source(computation.root_id)
        del computation.instructions[:]
        computation.instructions.extend(left)
    return result


def compile_for_gpu(module: Any) -> tuple[GpuMemory, Any]:
    """What an HloModuleProto takes on the A100, and the HloModuleProto that is compiled for it.

    Raises:
        GpuCompilerMissingError: the compiler is not installed.
        CheckmateError: it can't compile the module; the message has its words.
    """
    check_installed()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("module", "compiled", "memory.json")]
        write_whole(files[0], without_copies(module).SerializeToString())
        command = [sys.executable, "-m", "experiments.xla.gpu_compiler", *map(str, files)]
        # Without a driver, JAX's own check of CUDA fails, and so does all but compiling.
        environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise CheckmateError(
                "xla-cannot-compile",
                f"XLA can't compile the step for a GPU:\n{done.stderr[-2000:]}",
            )
        compiled = type(module).FromString(files[1].read_bytes())
        return GpuMemory(**read_json(files[2])), compiled


def _compile(module: bytes) -> tuple[GpuMemory, bytes]:
    from jax._src.compiler import get_compile_options
    from jax._src.interpreters.mlir import make_ir_context
    from jax._src.lib import _jax, xla_client
    from jax._src.lib.mlir import ir
    from jax.experimental.topologies import get_topology_desc

    described = get_topology_desc("", "cuda", target_config=_TARGET, topology="1x1x1")
    (device,) = described.devices
    with make_ir_context():
        step = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(module))
    compiled = device.client.compile(
        step,
        executable_devices=xla_client.DeviceList((device,)),
        compile_options=get_compile_options(num_replicas=1, num_partitions=1),
    )
    memory = compiled.get_compiled_memory_stats()
    bytes_of = GpuMemory(
        memory.temp_size_in_bytes, memory.argument_size_in_bytes, memory.output_size_in_bytes
    )
    (result,) = compiled.hlo_modules()
    return bytes_of, result.as_serialized_hlo_module_proto()


def _main(module: str, compiled: str, file: str) -> None:
    memory, result = _compile(Path(module).read_bytes())
    write_whole(compiled, result)
    write_whole(file, json.dumps(asdict(memory)))


if __name__ == "__main__":
    _main(*sys.argv[1:])
