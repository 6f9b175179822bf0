"""What the step as it was traced will hold: in the order of TensorFlow's own executor."""

from __future__ import annotations

from checkmate_tf.devices.device import Device, Order
from checkmate_tf.graph.extraction import Extraction
from checkmate_tf.program.buffers import with_buffers
from checkmate_tf.program.forecast import Forecast, forecast
from checkmate_tf.program.instructions import START, Instruction, Instructions
from checkmate_tf.program.lower import lower
from checkmate_tf.program.order import newest_before, returned
from checkmate_tf.program.reads import with_reads
from solvers import Schedule


def forecast_unchanged(extraction: Extraction, device: Device, held: int = 0) -> Forecast:
    """The peaks of the step as it was traced; `held` bytes are there before it.

    On a CPU its operations wait for nothing but what they read, and each thread goes on with what
    it made ready last. On other devices they start in the order of the graph.
    """
    program, at_once = extraction.program, device.at_once()
    if device.order is not Order.AS_FREED or at_once == 1:
        instructions = lower(extraction, Schedule(range(len(extraction.graph))), device)
        return forecast(program, instructions, held, at_once=at_once)
    return forecast(program, _as_traced(extraction), held, at_once=at_once, newest_first=True)


def _as_traced(extraction: Extraction) -> Instructions:
    """Every operation once; it waits for what it must run after, whatever it reads."""
    program = extraction.program
    numbers = range(len(program.operations))
    newest = {number: number for number in numbers}  # each is the instruction of its number
    instructions = [
        Instruction(number, waits_for=newest_before(program, number, newest) or (START,))
        for number in numbers
    ]
    last = returned(tuple(numbers) or (START,))
    return with_buffers(extraction, with_reads(program, [*instructions, last]))
