from __future__ import annotations

import sys
import types
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from fedra.models import MODELS, build_model, load_parameter_vector, parameter_vector, trainable_parameters

SHAPES = {
    "char-tree": (80,),
    "cnn28": (1, 28, 28),
    "cnn32": (3, 32, 32),
    "logistic": (1, 8, 8),
    "text-cnn": (30,),
}


def build(name: str, seed: int = 0, **params: object) -> nn.Module:
    return build_model(name, input_shape=SHAPES[name], num_classes=7, seed=seed, num_words=50, **params)


@pytest.fixture
def own_module() -> Iterator[types.ModuleType]:
    module = types.ModuleType("own_models_for_test")
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_maps_a_batch_to_class_scores(name: str) -> None:
    inputs = torch.zeros(5, *SHAPES[name], dtype=torch.int64 if len(SHAPES[name]) == 1 else torch.float32)
    assert build(name)(inputs).shape == (5, 7)


@pytest.mark.parametrize("name", MODELS)
def test_initial_weights_come_from_the_seed_alone(name: str) -> None:
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = parameter_vector(build(name, seed=3))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(parameter_vector(build(name, seed=3)), first)
    assert not torch.equal(parameter_vector(build(name, seed=4)), first)


def test_the_cnn_for_mnist_has_the_size_of_the_measured_one() -> None:
    model = build_model("cnn28", input_shape=(1, 28, 28), num_classes=10, seed=0)
    assert parameter_vector(model).numel() == 80_202
    large = build_model("cnn28", input_shape=(1, 28, 28), num_classes=10, seed=0, channels=(32, 64), hidden=512)
    assert parameter_vector(large).numel() == 582_026


def test_embeddings_are_copied_and_frozen_unless_told_otherwise() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 12)).astype(np.float32)
    frozen = build("text-cnn", embeddings=vectors)
    assert torch.equal(frozen.embedding.weight.detach(), torch.from_numpy(vectors))
    assert all(parameter is not frozen.embedding.weight for parameter in trainable_parameters(frozen))
    trained = build("text-cnn", embeddings=vectors, freeze=False)
    assert any(parameter is trained.embedding.weight for parameter in trainable_parameters(trained))
    vectors[:] = 0
    assert frozen.embedding.weight.abs().sum() > 0


def test_a_parameter_vector_goes_back_into_the_model() -> None:
    model = build("cnn28").to(memory_format=torch.channels_last)
    vector = torch.randn(parameter_vector(model).shape, generator=torch.Generator().manual_seed(0))
    load_parameter_vector(model, vector)
    assert torch.equal(parameter_vector(model), vector)
    assert torch.equal(model[0].weight, vector[: 16 * 25].view(16, 1, 5, 5))
    with pytest.raises(ValueError, match=r"trainable parameters, got a vector of shape \(3,\)"):
        load_parameter_vector(model, torch.zeros(3))


def test_own_functions_and_classes_get_the_facts_they_ask_for(own_module: types.ModuleType) -> None:
    class Own(nn.Module):
        def __init__(self, num_classes: int, width: int = 4):
            super().__init__()
            self.layer = nn.Linear(width, num_classes)

    own_module.Own = Own
    own_module.fixed = lambda num_classes: nn.Linear(2, num_classes)
    model = build_model("own_models_for_test:Own", input_shape=(9,), num_classes=3, seed=0, width=9)
    assert model.layer.weight.shape == (3, 9)
    assert build_model("own_models_for_test:fixed", input_shape=(2,), num_classes=2, seed=0).in_features == 2
    with pytest.raises(ValueError, match="no parameter 'widht'; did you mean 'width'"):
        build_model("own_models_for_test:Own", input_shape=(9,), num_classes=3, seed=0, widht=9)


def test_own_things_that_are_no_model_are_rejected(own_module: types.ModuleType) -> None:
    own_module.nothing = lambda num_classes: None
    own_module.number = 5
    with pytest.raises(TypeError, match=r"must return a torch.nn.Module, got NoneType"):
        build_model("own_models_for_test:nothing", input_shape=(2,), num_classes=2, seed=0)
    with pytest.raises(TypeError, match="must be a function or class"):
        build_model("own_models_for_test:number", input_shape=(2,), num_classes=2, seed=0)


def test_mistakes_are_told_with_the_remedy() -> None:
    with pytest.raises(ValueError, match="unknown model 'cnn-28'; did you mean 'cnn28'"):
        build_model("cnn-28", input_shape=(1, 28, 28), num_classes=2, seed=0)
    with pytest.raises(ValueError, match="no parameter 'hiden'; did you mean 'hidden'"):
        build("cnn28", hiden=5)
    with pytest.raises(ValueError, match=r"16x16 or more, got \(8, 8\)"):
        build_model("cnn28", input_shape=(1, 8, 8), num_classes=2, seed=0)
    with pytest.raises(ValueError, match=r"needs embeddings=.* or num_words="):
        build_model("text-cnn", input_shape=(30,), num_classes=2, seed=0)
    with pytest.raises(ValueError, match=r"length >= 5, got \(4,\)"):
        build_model("text-cnn", input_shape=(4,), num_classes=2, seed=0, num_words=9)


def test_the_tree_has_widths_for_its_length() -> None:
    for last in (0, 6):
        model = build_model("char-tree", input_shape=(6,), num_classes=3, seed=0, widths=(3, 2), last=last)
        assert model(torch.full((2, 6), 3)).shape == (2, 3)
    with pytest.raises(ValueError, match="give 0 to 80"):
        build("char-tree", last=81)
    for shape in ((79,), (80, 1)):
        with pytest.raises(ValueError, match="give other widths"):
            build_model("char-tree", input_shape=shape, num_classes=3, seed=0)


def test_the_tree_sees_every_character() -> None:
    model = build("char-tree").double()
    tokens = torch.zeros(1, 80, dtype=torch.int64)
    plain = model(tokens)
    for place in range(80):
        changed = tokens.clone()
        changed[0, place] = 1
        assert not torch.equal(model(changed), plain), place
