"""Passes side by side: the bits of one thread, errors that come out, nothing that waits for ever."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fedra.simulation.gradients import CohortGradients, CohortSamples
from fedra.simulation.gradients.loop import cross_entropy
from fedra.simulation.gradients.turns import Crew, Pass, Turn, Turns, longest_first


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


def samples(sizes: Sequence[int], seed: int) -> CohortSamples:
    draw = torch.Generator().manual_seed(seed)
    total = sum(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def dropout(client: int, layer: int) -> np.random.Generator:
        return np.random.default_rng([seed, client, layer])

    return CohortSamples(torch.randn(total, 1, 6, 6, generator=draw), torch.arange(total) % 4, offsets, dropout)


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


SIZES = st.lists(st.sampled_from([0, 1, 2, 5, 11, 47, 48, 130]), max_size=12)


@settings(max_examples=25)
@given(
    cohorts=st.lists(SIZES, min_size=1, max_size=3),
    chunk=st.sampled_from([1, 3, 7, 50, 192]),
    threads=st.sampled_from([1, 2, 3]),
    twice=st.booleans(),
)
def test_cohorts_side_by_side_have_the_bits_of_one_after_another(
    cohorts: list[list[int]], chunk: int, threads: int, twice: bool
) -> None:
    given = [samples(sizes, seed) for seed, sizes in enumerate(cohorts)]
    threads_of_torch = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        alone = CohortGradients(Twice() if twice else network(), chunk=chunk)
        expected = [alone(*one[:3], dropout=one.dropout) for one in given]
        together = CohortGradients(Twice() if twice else network(), chunk=chunk, threads=threads)
        # The first time, it is still open how gradients are computed.
        for _ in range(2):
            assert all(map(torch.equal, together.together(given), expected))
    finally:
        torch.set_num_threads(threads_of_torch)


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("sizes", [[3, 5, 2, 8], [60, 70]])
def test_what_fails_in_any_cohort_is_raised_and_the_next_call_is_right(wrong: int, sizes: list[int]) -> None:
    def loss(scores: Tensor, labels: Tensor) -> Tensor:
        if (labels == 9).any():
            raise ValueError("there is no class 9")
        return cross_entropy(scores, labels)

    model = network()
    compute = CohortGradients(model, loss=loss, chunk=16, threads=2)
    given = [samples(sizes, seed) for seed in range(2)]
    expected = compute.together(given)
    given[wrong].labels[-1] = 9
    with pytest.raises(ValueError, match="there is no class 9"):
        compute.together(given)
    given[wrong].labels[-1] = (sum(sizes) - 1) % 4
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())
    assert all(map(torch.equal, compute.together(given), expected))


class Sized(nn.Module):
    """Uses its layer on another number of rows where a batch begins with a mark, which one pass cannot keep apart."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(36, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        flat = inputs.flatten(1)
        if flat.max() < 100:
            return self.layer(flat)  # type: ignore[no-any-return]
        return self.layer(torch.cat([flat, flat]))[: len(flat)]  # type: ignore[no-any-return]


@pytest.mark.filterwarnings("ignore:gradients are computed client by client")
def test_a_cohort_that_one_pass_cannot_do_has_the_bits_of_one_thread() -> None:
    given = [samples([3, 5, 2, 8], seed) for seed in range(2)]
    given[1].inputs[0] = 200.0
    found = []
    for threads in (1, 2):
        compute = CohortGradients(Sized(), threads=threads)
        compute.together(given[:1])
        found.append(compute.together(given))
        assert compute.engine == "loop"
    assert all(map(torch.equal, *found))


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


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=12))
def test_the_longest_go_first_and_each_right_behind_the_one_it_continues(drawn: list[tuple[int, bool]]) -> None:
    passes = [Pass(run=lambda turn: None, size=n, continues=c and i > 0) for i, (n, c) in enumerate(drawn)]
    found = longest_first(passes)
    places = [next(place for place, other in enumerate(passes) if other is one) for one in found]
    assert sorted(places) == list(range(len(passes)))
    starts = [number for number, one in enumerate(found) if not one.continues]
    chains = [found[start:stop] for start, stop in pairwise([*starts, len(found)])]
    assert all(b - a == 1 for one, a, b in zip(found[1:], places, places[1:], strict=False) if one.continues)
    longest = [max(one.size for one in chain) for chain in chains]
    assert longest == sorted(longest, reverse=True)


def test_an_interrupt_ends_all_passes_and_leaves_no_thread() -> None:
    seen = []

    def interrupt(turn: Turn | None) -> None:
        time.sleep(0.1)
        signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.1)
        seen.append("ended")

    def wait(turn: Turn | None) -> None:
        assert turn is not None
        turn.wait("what never happens")
        seen.append("went on")

    main = threading.get_ident()
    crew = Crew(2)
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        crew.run([Pass(run=interrupt), Pass(run=wait, continues=True), Pass(run=wait, continues=True)])
    assert seen == ["ended"]
    assert not set(threading.enumerate()) - before
    crew.run([Pass(run=lambda turn: seen.append("fine"))])
    assert seen == ["ended", "fine"]


def test_what_is_set_meanwhile_does_not_give_a_pass_more_of_torch_s_threads() -> None:
    seen = []
    threads = torch.get_num_threads()
    crew = Crew(2)
    try:
        crew.run([Pass(run=lambda turn: None)])
        torch.set_num_threads(3)
        crew.run([Pass(run=lambda turn: seen.append(torch.get_num_threads()))] * 4)
    finally:
        torch.set_num_threads(threads)
    assert seen == [1] * 4
