"""Passes side by side: the bits of one thread, errors that come out, nothing that waits for ever."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fedra.simulation.gradients import CohortGradients
from fedra.simulation.gradients.turns import Crew, Pass, Turn, Turns


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3),
        nn.ReLU(),
        nn.Dropout2d(0.2),
        nn.Flatten(),
        nn.Linear(48, 8),
        nn.Dropout(0.5),
        nn.Linear(8, 4),
    )


class Twice(nn.Module):
    """Uses a layer twice, so that its rows are written twice in a pass."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(36, 36), nn.Linear(36, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.last(self.first(torch.tanh(self.first(inputs.flatten(1)))))  # type: ignore[no-any-return]


class Noisy(nn.Module):
    """Draws from torch's own generator, too little to be told from one pass per client."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(36, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        flat = inputs.flatten(1)
        return self.layer(flat + 1e-4 * torch.randn_like(flat))  # type: ignore[no-any-return]


def generators(client: int, layer: int) -> np.random.Generator:
    return np.random.default_rng([3, client, layer])


def gradients(model: nn.Module, sizes: list[int], chunk: int, threads: int) -> Tensor:
    total = sum(sizes)
    draw = torch.Generator().manual_seed(1)
    inputs, labels = torch.randn(total, 1, 6, 6, generator=draw), torch.arange(total) % 4
    compute = CohortGradients(model, chunk=chunk, threads=threads)
    return compute(inputs, labels, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), dropout=generators)


@settings(max_examples=25)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 2, 5, 11, 47, 48, 130]), min_size=1, max_size=12).filter(any),
    chunk=st.sampled_from([1, 3, 7, 50, 192]),
    threads=st.sampled_from([2, 3]),
    twice=st.booleans(),
)
def test_the_bits_are_those_of_one_thread(sizes: list[int], chunk: int, threads: int, twice: bool) -> None:
    make = Twice if twice else network
    threads_of_torch = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        expected = gradients(make(), sizes, chunk, 1)
    finally:
        torch.set_num_threads(threads_of_torch)
    assert torch.equal(gradients(make(), sizes, chunk, threads), expected)


def test_a_model_that_draws_by_itself_has_one_thread() -> None:
    sizes = [5, 60, 3, 7, 130]
    assert torch.equal(gradients(Noisy(), sizes, 16, 2), gradients(Noisy(), sizes, 16, 1))


def test_they_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)

    def meet(turn: Turn | None) -> None:
        both.wait()

    Crew(2).run([Pass(run=meet), Pass(run=meet)])


def test_what_fails_is_raised_and_ends_those_that_wait() -> None:
    seen = []

    def fail(turn: Turn | None) -> None:
        raise ValueError("the model is wrong")

    def wait(turn: Turn | None) -> None:
        assert turn is not None
        turn.wait("something")
        seen.append("went on")

    crew = Crew(2)
    with pytest.raises(ValueError, match="the model is wrong"):
        crew.run([Pass(run=fail), Pass(run=wait, continues=True), Pass(run=wait, continues=True)])
    assert not seen
    crew.run([Pass(run=lambda turn: seen.append("fine"))])
    assert seen == ["fine"]


def test_a_pass_that_is_over_is_not_waited_for() -> None:
    turns = Turns()
    turns.end(0, failed=False)
    Turn(turns=turns, number=1, before=0).wait("what it never did")
    turns.done(2, "this")
    Turn(turns=turns, number=3, before=2).wait("this")


@pytest.mark.parametrize("threads", [0, -1, 1.5])
def test_threads_are_counted(threads: float) -> None:
    with pytest.raises((TypeError, ValueError), match="threads"):
        CohortGradients(network(), threads=threads)  # type: ignore[arg-type]
