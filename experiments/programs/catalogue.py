"""All programs by name."""

from __future__ import annotations

from experiments.programs import generative, sequences, several_networks, vision

PROGRAMS = {
    each.name: each
    for room in (generative, several_networks, vision, sequences)
    for each in room.PROGRAMS
}
