import pytest

from solvers.graph.layer_graphs import vgg19

keras = pytest.importorskip("keras")

from experiments.paper_networks import keras_layer_graph, segnet  # noqa: E402


def test_a_keras_model_and_the_table_give_the_same_graph() -> None:
    table = vgg19()
    graph = keras_layer_graph(keras.applications.VGG19(weights=None), "VGG19")
    assert graph.fixed_bytes == table.fixed_bytes
    assert [(node.cost, node.memory, node.dependencies) for node in graph.nodes] == [
        (node.cost, node.memory, node.dependencies) for node in table.nodes
    ]


def test_resnet50_is_as_large_as_the_public_instance() -> None:
    graph = keras_layer_graph(keras.applications.ResNet50(weights=None), "ResNet50")
    assert (len(graph), len(graph.edges)) == (353, 751)


def test_segnet_is_as_large_as_the_public_instance() -> None:
    assert len(segnet()) == 77
