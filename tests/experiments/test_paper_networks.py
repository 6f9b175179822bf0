import pytest

from solvers.graph.layer_graphs import vgg19

keras = pytest.importorskip("keras")

from experiments.paper_networks import fcn8_vgg, keras_layer_graph, segnet, unet  # noqa: E402


@pytest.mark.slow
def test_a_keras_model_and_the_table_give_the_same_graph() -> None:
    table = vgg19()
    graph = keras_layer_graph(keras.applications.VGG19(weights=None), "VGG19")
    assert graph.fixed_bytes == table.fixed_bytes
    assert [(node.cost, node.memory, node.dependencies) for node in graph.nodes] == [
        (node.cost, node.memory, node.dependencies) for node in table.nodes
    ]


@pytest.mark.slow
def test_resnet50_is_as_large_as_the_public_instance() -> None:
    graph = keras_layer_graph(keras.applications.ResNet50(weights=None), "ResNet50")
    assert (len(graph), len(graph.edges)) == (353, 751)


def test_segnet_is_as_large_as_the_public_instance() -> None:
    assert len(segnet()) == 77


@pytest.mark.slow
def test_fcn8_is_as_large_as_the_public_instance() -> None:
    graph = fcn8_vgg()
    assert (len(graph), len(graph.edges)) == (73, 149)


@pytest.mark.slow
def test_unet_is_as_large_as_the_authors_and_has_their_memories() -> None:
    graph = unet()
    assert (len(graph), len(graph.edges)) == (71, 148)
    # Bytes of the authors' profile at batch 32.
    profile = {0: 2_071_986_176, 18: 388_497_408, 29: 1_579_253_760, 34: 153_780_224}
    assert {each: 32 * graph.nodes[each].memory for each in profile} == profile
