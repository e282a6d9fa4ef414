from __future__ import annotations

import pytest
import torch
from torch import nn

from fedra.simulation.gradients.batch import Batch, Segment, checked_offsets, checked_result, write, write_samples


def batch() -> Batch:
    """Five samples: two of client 2, which is met here first, and three of client 0, which goes on."""
    segments = [Segment(2, 0, 2, True), Segment(0, 2, 5, False)]
    return Batch(segments=segments, owners=torch.tensor([2, 2, 0, 0, 0]), first_clients=torch.tensor([2]))


def test_a_clients_first_segment_overwrites_and_later_ones_add() -> None:
    rows = torch.full((3, 2), 7.0)
    for segment in batch().segments:
        write(rows, segment, torch.tensor([1.0, 2.0]))
    assert rows.tolist() == [[8.0, 9.0], [7.0, 7.0], [1.0, 2.0]]


def test_values_of_samples_are_summed_by_client() -> None:
    rows = torch.full((3, 1), 7.0)
    write_samples(rows, batch(), torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]]))
    assert rows.tolist() == [[7.0 + 12.0], [7.0], [3.0]]
    write_samples(rows, batch().again(), torch.ones(5, 1))
    assert rows.tolist() == [[22.0], [7.0], [5.0]]


def test_the_same_batch_again_is_nobodys_first() -> None:
    again = batch().again()
    assert (again.size, len(again.first_clients)) == (5, 0)
    assert [segment.first for segment in again.segments] == [False, False]


def test_offsets_must_divide_the_samples_among_clients() -> None:
    inputs, labels = torch.zeros(92, 3), torch.zeros(92)
    assert checked_offsets(inputs, labels, torch.tensor([0, 40, 40, 92])) == [0, 40, 40, 92]
    with pytest.raises(ValueError, match="must rise from 0 to the 92 samples, got 0 to 91"):
        checked_offsets(inputs, labels, [0, 91])
    with pytest.raises(ValueError, match="must rise from 0"):
        checked_offsets(inputs, labels, [0, 50, 40, 92])
    with pytest.raises(ValueError, match=r"offsets must be clients \+ 1 integers, got float64"):
        checked_offsets(inputs, labels, [0.0, 92.0])
    with pytest.raises(ValueError, match="92 inputs but 91 labels"):
        checked_offsets(inputs, labels[1:], [0, 92])


def test_the_result_has_a_row_for_each_client() -> None:
    model = nn.Linear(64, 10)
    assert checked_result(model, 9, None).shape == (9, 650)
    mine = torch.empty(9, 650)
    assert checked_result(model, 9, mine) is mine
    for other in (torch.empty(9, 649), torch.empty(9, 650, dtype=torch.float64), torch.empty(650, 9).t()):
        with pytest.raises(ValueError, match=r"out must be a contiguous torch\.float32 matrix \(9, 650\)"):
            checked_result(model, 9, other)
    with pytest.raises(ValueError, match="the model has no trainable parameters"):
        checked_result(nn.Flatten(), 9, None)
