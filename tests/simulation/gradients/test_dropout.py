from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedra.simulation.gradients import CohortGradients
from fedra.simulation.gradients.dropout import ClientDropout

SIZES = (1, 4, 0, 1, 21, 2)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])


def generators(client: int, layer: int) -> np.random.Generator:
    return np.random.default_rng([5, client, layer])


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 10)).double()


def samples() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(1)
    total = int(OFFSETS[-1])
    return torch.randn(total, 6, dtype=torch.float64, generator=draw), torch.arange(total) % 10


def test_masks_are_the_clients_own_draws() -> None:
    model = network()
    inputs, labels = samples()
    found = CohortGradients(model, chunk=7)(inputs, labels, OFFSETS, dropout=generators)
    for client, row in enumerate(found):
        span = slice(OFFSETS[client], OFFSETS[client + 1])
        if not SIZES[client]:
            continue
        first, second = (
            torch.from_numpy(generators(client, layer).random((SIZES[client], 8), dtype=np.float32) >= p) / (1 - p)
            for layer, p in ((1, 0.3), (2, 0.5))
        )
        scores = model[4]((model[0](inputs[span]) * first).tanh() * second)
        grads = torch.autograd.grad(F.cross_entropy(scores, labels[span]), model.parameters())
        torch.testing.assert_close(row, torch.cat([grad.reshape(-1) for grad in grads]))


@pytest.mark.parametrize("chunk", [1, 5, 192])
def test_a_clients_masks_depend_on_neither_chunks_nor_company(chunk: int) -> None:
    inputs, labels = samples()
    together = CohortGradients(network())(inputs, labels, OFFSETS, dropout=generators)
    chunked = CohortGradients(network(), chunk=chunk)(inputs, labels, OFFSETS, dropout=generators)
    torch.testing.assert_close(chunked, together)
    span = slice(OFFSETS[4], OFFSETS[5])
    alone = CohortGradients(network(), chunk=chunk)(
        inputs[span], labels[span], [0, SIZES[4]], dropout=lambda client, layer: generators(4, layer)
    )
    torch.testing.assert_close(alone[0], together[4])


class Idle(nn.Module):
    """A parameter of an unknown kind, which takes no part."""

    def __init__(self) -> None:
        super().__init__()
        self.idle = nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs


def test_both_engines_drop_the_same() -> None:
    inputs, labels = samples()
    together = CohortGradients(network())(inputs, labels, OFFSETS, dropout=generators)
    with pytest.warns(UserWarning, match="Idle"):
        looped = CohortGradients(nn.Sequential(network(), Idle()))(inputs, labels, OFFSETS, dropout=generators)
    torch.testing.assert_close(looped[:, :-1], together)
    assert (looped[:, -1] == 0).all()


class Functional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        return F.dropout(self.layer(inputs), 0.4, self.training)


def test_functional_dropout_is_the_same_as_the_module() -> None:
    inputs, labels = samples()
    model = Functional().double()
    module = nn.Sequential(model.layer, nn.Dropout(0.4))
    first = CohortGradients(model)(inputs, labels, OFFSETS, dropout=generators)
    assert torch.equal(CohortGradients(module)(inputs, labels, OFFSETS, dropout=generators), first)


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 10)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs + torch.randn(6, dtype=inputs.dtype))


def test_whatever_else_a_model_draws_repeats_and_leaves_the_global_generator_alone() -> None:
    inputs, labels = samples()
    model = Noisy().double()
    results = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        state = torch.get_rng_state()
        with pytest.warns(UserWarning, match="client by client"):
            results.append(CohortGradients(model)(inputs, labels, OFFSETS, dropout=generators))
        assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(*results)


def test_dropout_without_generators_is_an_error_but_not_in_eval_mode() -> None:
    inputs, labels = samples()
    with pytest.raises(ValueError, match=r"pass dropout=\.\.\., or put the model in eval mode"):
        CohortGradients(network())(inputs, labels, OFFSETS)
    CohortGradients(network().eval())(inputs, labels, OFFSETS)


def test_channel_dropout_drops_whole_channels() -> None:
    masks = ClientDropout(generators)
    with masks.forward_pass([(0, 2), (1, 3)]):
        kept = nn.Dropout2d(0.5)(torch.ones(5, 20, 3, 4))
    assert set(kept.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(kept, kept[:, :, :1, :1].expand(5, 20, 3, 4))


@pytest.mark.parametrize(("p", "expected"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_ends_of_the_range(p: float, expected: float) -> None:
    with ClientDropout(generators).forward_pass([(0, 4)]):
        assert (F.dropout(torch.ones(4, 9), p) == expected).all()


def test_the_share_of_dropped_values_is_p() -> None:
    with ClientDropout(generators).forward_pass([(client, 1) for client in range(100)]):
        dropped = F.dropout(torch.ones(100, 500), 0.2) == 0
    assert abs(float(dropped.float().mean()) - 0.2) < 0.01
    assert not torch.equal(dropped[0], dropped[1])
