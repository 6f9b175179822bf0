"""All programs by name."""

from __future__ import annotations

from experiments.programs import generative, sequences, vision

PROGRAMS = {each.name: each for room in (generative, vision, sequences) for each in room.PROGRAMS}
