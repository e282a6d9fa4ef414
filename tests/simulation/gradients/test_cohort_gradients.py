from __future__ import annotations

import copy
import itertools
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedra.models import build_model, parameter_vector, trainable_parameters
from fedra.pooling import MaxPoolReLU
from fedra.simulation.gradients import CohortGradients

SIZES = (1, 1, 3, 0, 1, 60, 1, 25, 0)
SHAPES = {"cnn28": (1, 28, 28), "cnn32": (3, 32, 32), "logistic": (1, 8, 8), "text-cnn": (30,)}


def generators(client: int, layer: int) -> np.random.Generator:
    return np.random.default_rng([11, client, layer])


def offsets_of(sizes: tuple[int, ...]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)])


def cohort(shape: tuple[int, ...], sizes: tuple[int, ...] = SIZES, seed: int = 0) -> tuple[Tensor, Tensor, np.ndarray]:
    draw = torch.Generator().manual_seed(seed)
    total = sum(sizes)
    if len(shape) == 1:
        inputs = torch.randint(0, 50, (total, *shape), generator=draw)
    else:
        inputs = torch.randn(total, *shape, generator=draw)
    return inputs, torch.randint(0, 10, (total,), generator=draw), offsets_of(sizes)


def reference(model: nn.Module, inputs: Tensor, labels: Tensor, offsets: np.ndarray) -> Tensor:
    """One client after another, in float64, by autograd alone."""
    model = copy.deepcopy(model).double()
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    rows = []
    for start, stop in itertools.pairwise(offsets):
        if start == stop:
            rows.append(torch.zeros_like(parameter_vector(model)))
            continue
        loss = F.cross_entropy(model(inputs[start:stop]), labels[start:stop])
        grads = torch.autograd.grad(loss, trainable_parameters(model), allow_unused=True, materialize_grads=True)
        rows.append(torch.cat([grad.reshape(-1) for grad in grads]))
    return torch.stack(rows)


def relative_error(found: Tensor, expected: Tensor) -> float:
    norms = expected.norm(dim=1)
    empty = norms == 0
    assert (found[empty] == 0).all()
    return float(((found.double() - expected).norm(dim=1)[~empty] / norms[~empty]).max())


def build(name: str, **params: object) -> nn.Module:
    return build_model(name, input_shape=SHAPES[name], num_classes=10, seed=5, num_words=50, **params)


def smooth(model: nn.Module) -> nn.Module:
    """Replace what breaks near-ties: which way they fall is up to rounding, in any float32 computation."""
    twins = {MaxPoolReLU: nn.Sequential(nn.AvgPool2d(2), nn.Tanh()), nn.ReLU: nn.Tanh()}
    return nn.Sequential(*(twins.get(type(module), module) for module in model.children()))


@pytest.mark.parametrize("chunk", [192, 10, 1])
@pytest.mark.parametrize("name", ["cnn28", "cnn32", "logistic"])
def test_float32_gradients_agree_with_float64_autograd(name: str, chunk: int) -> None:
    model = smooth(build(name)).eval()
    gradients = CohortGradients(model, chunk=chunk)
    samples = cohort(SHAPES[name])
    found = gradients(*samples)
    assert gradients.engine == "segmented"
    assert found.dtype == torch.float32
    assert relative_error(found, reference(model, *samples)) < 1e-5


@pytest.mark.parametrize("chunk", [192, 10, 1])
@pytest.mark.parametrize("name", SHAPES)
def test_every_model_has_exact_gradients_in_one_pass(name: str, chunk: int) -> None:
    model = build(name).eval().double()
    gradients = CohortGradients(model, chunk=chunk)
    inputs, labels, offsets = cohort(SHAPES[name])
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    found = gradients(inputs, labels, offsets)
    assert gradients.engine == "segmented"
    assert relative_error(found, reference(model, inputs, labels, offsets)) < 1e-12


@pytest.mark.parametrize("sizes", [(2, 700, 1), (700,), (1, 1), (1, 2, 3, 300)])
def test_clients_larger_than_chunks_are_summed_exactly(sizes: tuple[int, ...]) -> None:
    model = smooth(build("cnn28")).eval()
    samples = cohort(SHAPES["cnn28"], sizes=sizes)
    found = CohortGradients(model, chunk=64)(*samples)
    assert relative_error(found, reference(model, *samples)) < 1e-5


def test_trained_embeddings_take_part() -> None:
    model = build("text-cnn", freeze=False, embedding_dim=8).eval().double()
    samples = cohort(SHAPES["text-cnn"])
    gradients = CohortGradients(model, chunk=10)
    assert relative_error(gradients(*samples), reference(model, *samples)) < 1e-12
    assert gradients.engine == "segmented"


def test_the_same_samples_give_the_same_bits_wherever_they_lie() -> None:
    model = build("cnn28").train()
    inputs, labels, offsets = cohort(SHAPES["cnn28"])
    first = CohortGradients(model)(inputs, labels, offsets, dropout=generators)
    shifted = torch.empty(inputs.numel() + 3)[3:].view(inputs.shape).copy_(inputs)
    torch.manual_seed(99)
    state = torch.get_rng_state()
    dirty = torch.full_like(first, float("nan"))
    second = CohortGradients(model)(shifted, labels, offsets.tolist(), dropout=generators, out=dirty)
    assert second is dirty
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_model_is_left_as_it_was() -> None:
    model = build("cnn28").train()
    before = parameter_vector(model)
    CohortGradients(model)(*cohort(SHAPES["cnn28"]), dropout=generators)
    assert torch.equal(parameter_vector(model), before)
    assert model.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


def test_no_samples_at_all_give_zeros() -> None:
    gradients = CohortGradients(build("logistic"))
    assert (gradients(*cohort((1, 8, 8), sizes=(0, 0))) == 0).all()
    assert gradients.engine is None


class Detours(nn.Module):
    """A layer that is called twice, one that only some passes reach, and one that never takes part."""

    def __init__(self) -> None:
        super().__init__()
        self.twice = nn.Linear(6, 6)
        self.sometimes = nn.Linear(6, 6)
        self.never = nn.Linear(6, 2)
        self.last = nn.Linear(6, 10)
        self.detour = True

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.twice(self.twice(inputs).tanh()).relu_()
        if self.detour:
            hidden = self.sometimes(hidden)
        return self.last(hidden)


def test_layers_called_twice_or_not_at_all() -> None:
    torch.manual_seed(0)
    model = Detours().double()
    inputs = torch.randn(92, 6, dtype=torch.float64)
    samples = (inputs, torch.arange(92) % 10, offsets_of(SIZES))
    gradients = CohortGradients(model, chunk=8)
    out = torch.full((len(SIZES), parameter_vector(model).numel()), float("nan"), dtype=torch.float64)
    for detour in (True, False):
        model.detour = detour
        assert relative_error(gradients(*samples, out=out), reference(model, *samples)) < 1e-12
    assert gradients.engine == "segmented"


class OnceAnotherLayout(nn.Module):
    """Hands its layer a batch that no longer has one row per sample, once the batch is large."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        if len(inputs) > 5:
            return self.layer(inputs.reshape(-1, 3)).view(len(inputs), 2, 10).sum(1)
        return self.layer(inputs.view(-1, 2, 3)).sum(1)


class OwnParameter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(10))
        self.layer = nn.Linear(6, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs) * self.scale


class SharedWeight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.second.weight = self.first.weight
        self.last = nn.Linear(6, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.last(self.second(self.first(inputs).tanh()))


class WeightByHand(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        return F.linear(inputs, self.layer.weight.abs()) + self.layer(inputs)


class CentredBatch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs - inputs.mean(0)) + self.layer(inputs)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (OnceAnotherLayout, r"Linear is given \(74, 3\) in a batch of 37 samples"),
        (OwnParameter, r"the model itself \(OwnParameter\) is not one of Linear"),
        (SharedWeight, r"second \(Linear\) shares its weight with first"),
        (WeightByHand, "other than by calling the layer"),
        (CentredBatch, "mixes samples"),
        (lambda: nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 10)), r"1 \(BatchNorm1d\) may mix"),
        (lambda: nn.Sequential(nn.Linear(6, 4), nn.PReLU(), nn.Linear(4, 10)), r"1 \(PReLU\) is not one of"),
    ],
)
def test_other_models_fall_back_to_a_loop_and_say_so_once(make: type[nn.Module], reason: str) -> None:
    torch.manual_seed(0)
    model = make().double()
    sizes = (2, 3, 0, 25, 2, 5)
    inputs = torch.randn(sum(sizes), 6, dtype=torch.float64)
    samples = (inputs, torch.arange(len(inputs)) % 10, offsets_of(sizes))
    gradients = CohortGradients(model)
    with pytest.warns(UserWarning, match=reason):
        found = gradients(*samples)
    assert gradients.engine == "loop"
    assert relative_error(found, reference(model, *samples)) < 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = gradients(*samples)
    assert torch.equal(found, again)


class Viewing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.last = nn.Linear(4 * 36, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.last(self.convolution(inputs).relu().view(-1, 4 * 36))


def test_models_that_need_contiguous_images_get_them() -> None:
    model = Viewing().double()
    samples = cohort((3, 8, 8))
    gradients = CohortGradients(model, chunk=10)
    with pytest.warns(UserWarning, match=r"use .flatten\(1\)"):
        found = gradients(samples[0].double(), *samples[1:])
    assert gradients.engine == "segmented"
    assert relative_error(found, reference(model, *samples)) < 1e-12


def test_another_loss_and_other_labels() -> None:
    model = build("logistic").double()
    inputs, labels, offsets = cohort((1, 8, 8))
    inputs = inputs.double()
    gradients = CohortGradients(model, loss=lambda scores, target: scores.square().sum(1) * (target + 1))
    rows = gradients(inputs, labels, offsets)
    total = (model(inputs).square().sum(1) * (labels + 1)).sum()
    expected = torch.cat([grad.reshape(-1) for grad in torch.autograd.grad(total, model.parameters())])
    torch.testing.assert_close(torch.tensor(np.diff(offsets), dtype=torch.float64) @ rows, expected)
    assert not torch.allclose(gradients(inputs, 9 - labels, offsets), rows)


def test_mistakes_in_the_arguments_are_errors() -> None:
    inputs, labels, offsets = cohort((1, 8, 8))
    with pytest.raises(ValueError, match="chunk=0; give a whole number of at least 1"):
        CohortGradients(build("logistic"), chunk=0)
    with pytest.raises(TypeError, match=r"chunk=1\.5; give a whole number of at least 1"):
        CohortGradients(build("logistic"), chunk=1.5)
    with pytest.raises(ValueError, match="one value for each of"):
        CohortGradients(build("logistic"), loss=lambda scores, target: scores)(inputs, labels, offsets)
    with pytest.raises(ValueError, match="no trainable parameters"):
        CohortGradients(nn.Flatten())(inputs, labels, offsets)


def test_a_round_of_two_clients_needs_no_third_for_the_trial() -> None:
    """Generators are those of the clients that there are, also while it is tried which engine to take."""
    model = build_model("text-cnn", input_shape=(6,), num_classes=3, num_words=9, seed=0, freeze=False)
    positions: set[int] = set()

    def generators(client: int, layer: int) -> np.random.Generator:
        positions.add(client)
        return np.random.default_rng([client, layer])

    gradients = CohortGradients(model.train())
    gradients(torch.arange(12).reshape(2, 6) % 9, torch.tensor([0, 2]), [0, 1, 2], dropout=generators)
    assert positions <= {0, 1}


@pytest.mark.parametrize("chunk", [192, 10, 1])
def test_the_tree_over_characters_takes_one_pass_and_is_exact(chunk: int) -> None:
    model = build_model("char-tree", input_shape=(80,), num_classes=10, seed=5).double()
    draw = torch.Generator().manual_seed(3)
    inputs, labels, offsets = cohort((80,))
    inputs = torch.randint(0, 11, inputs.shape, generator=draw)
    gradients = CohortGradients(model, chunk=chunk)
    found = gradients(inputs, labels, offsets)
    assert gradients.engine == "segmented"
    assert relative_error(found, reference(model, inputs, labels, offsets)) < 1e-12
