from __future__ import annotations

import pytest
import torch
from torch import nn

from fedra.simulation.gradients.dropout import NotSegmentableError
from fedra.simulation.gradients.loop import Work, cross_entropy, loop_gradients
from fedra.simulation.gradients.segmented import LARGE_CLIENT, SegmentedEngine, segmentable_layers

SIZES = (1, 3, 0, LARGE_CLIENT + 9, 2, 20)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 4, bias=False)).double()


def work(sizes: tuple[int, ...] = SIZES) -> Work:
    draw = torch.Generator().manual_seed(1)
    total = sum(sizes)
    return Work(
        inputs=torch.randn(total, 6, dtype=torch.float64, generator=draw),
        labels=torch.arange(total) % 4,
        offsets=[0, *torch.tensor(sizes).cumsum(0).tolist()],
        loss=cross_entropy,
        dropout=None,
        memory_format=torch.contiguous_format,
    )


def test_layers_know_their_columns_in_the_result() -> None:
    first, second = segmentable_layers(network())
    assert first.columns == {"weight": (0, torch.Size([5, 6])), "bias": (30, torch.Size([5]))}
    assert second.columns == {"weight": (35, torch.Size([4, 5]))}
    out = torch.arange(110.0).reshape(2, 55)
    assert second.rows(out)["weight"].shape == (2, 4, 5)
    assert second.rows(out)["weight"][1, 0, 0] == 55 + 35


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)), r"1 \(BatchNorm1d\) may mix the samples"),
        (nn.InstanceNorm1d(4, track_running_stats=True), "keeps running statistics of the batch"),
        (nn.Sequential(nn.Linear(6, 4), nn.PReLU()), r"1 \(PReLU\) is not one of Linear, Conv1d"),
        (nn.Embedding(5, 3, max_norm=1.0), "uses max_norm, scale_grad_by_freq or sparse gradients"),
    ],
)
def test_what_one_pass_cannot_keep_apart_is_named(model: nn.Module, reason: str) -> None:
    with pytest.raises(NotSegmentableError, match=reason):
        segmentable_layers(model)


@pytest.mark.parametrize("chunk", [1, 7, 192])
@pytest.mark.parametrize("sizes", [SIZES, (0, 4), (1, 1, 1, 1), (LARGE_CLIENT, 2 * LARGE_CLIENT)])
def test_one_pass_gives_what_a_pass_per_client_gives(sizes: tuple[int, ...], chunk: int) -> None:
    model, given = network(), work(sizes)
    found, expected = (torch.full((len(sizes), 55), 9.0, dtype=torch.float64) for _ in range(2))
    SegmentedEngine(layers=segmentable_layers(model), chunk=chunk)(model, (given, found))
    loop_gradients(model, given, expected)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_the_model_keeps_its_parameters_trainable_and_no_hooks() -> None:
    model = network()
    engine = SegmentedEngine(layers=segmentable_layers(model), chunk=8)
    engine(model, (work(), torch.empty(len(SIZES), 55, dtype=torch.float64)))
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert all(not module._forward_hooks for module in model.modules())
