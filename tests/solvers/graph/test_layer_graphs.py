from solvers.graph.layer_graphs import unit_chain, vgg16, vgg19


def test_vgg19_is_the_graph_of_the_paper() -> None:
    graph = vgg19()
    assert (len(graph), len(graph.edges)) == (51, 99)
    assert graph.one_pass_cost == 58_896_187_392
    assert graph.fixed_bytes == 1_149_337_920


def test_vgg16_has_its_known_parameters() -> None:
    assert vgg16().fixed_bytes == 8 * 138_357_544


def test_a_batch_scales_costs_and_memories_but_not_parameters() -> None:
    one, many = vgg19(), vgg19(batch_size=3)
    assert many.one_pass_cost == 3 * one.one_pass_cost
    assert many.memories[0] == 3 * one.memories[0]
    assert many.fixed_bytes == one.fixed_bytes


def test_a_unit_chain_has_an_edge_to_each_mirror_image() -> None:
    chain = unit_chain(8)
    assert (len(chain), len(chain.edges)) == (17, 24)
    assert chain.nodes[9].dependencies == (7, 8)
