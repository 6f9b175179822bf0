"""The networks of section 6 as layer graphs: how large they are, beside what is known of them."""

from __future__ import annotations

from experiments.paper.settings import Settings
from experiments.paper.strategies import plans
from experiments.paper_networks import NETWORKS

_QUICK = ("VGG16", "VGG19", "U-Net")


def run(settings: Settings) -> None:
    """Count nodes, edges, MACs and bytes at batch size 1."""
    rows = []
    for name in _QUICK if settings.quick else NETWORKS:
        graph = settings.network(name)
        (kept,) = plans(graph, "checkpoint_all")
        rows.append(
            {
                "network": name,
                "nodes": len(graph),
                "edges": len(graph.edges),
                "forward MACs": int(sum(each.cost for each in graph.nodes if not each.backward)),
                "MACs of a step": int(graph.one_pass_cost),
                "bytes, all kept": kept["matrices"],
                "bytes, simulator": kept["simulator"],
                "fixed bytes": graph.fixed_bytes,
            }
        )
    settings.write_table("networks", "layer graphs, batch 1", rows)
