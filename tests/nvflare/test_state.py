"""A job that goes on where another was stopped."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.nvflare.job import Job, honest, model, reply, run_rounds
from tests.nvflare.test_aggregator import same, unchanged

from fedra.optimizers import SGD, Adam
from fedra.server.state import load_state

SETTINGS = {
    "memory and Adam": {"rule": "centered-clipping", "server_optimizer": Adam(lr=0.05)},
    "Adam": {"rule": "fedra", "server_optimizer": "adam"},
    "memory": {"rule": "centered-clipping"},
    "plain": {"rule": "fedra"},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_resumed_from_the_last_model_gives_the_same_bits(setting: str, tmp_path) -> None:
    options = SETTINGS[setting]
    start = model() | {"steps": np.asarray(7)}
    whole = Job(start, **options)
    run_rounds(whole, 6)
    first = Job(start, **options, state=tmp_path / "state.npz")
    run_rounds(first, 3)
    second = Job(
        {name: np.array(array) for name, array in first.params.items()}, **options, state=tmp_path / "state.npz"
    )
    for number in (3, 4, 5):
        second.round(honest(second.params, 8, number))
    same(second.params, whole.params)
    assert [record.round for record in second.recorder.records] == [3, 4, 5]
    assert second.recorder.runs[0].rounds_done == 3
    without = Job({name: np.array(array) for name, array in first.params.items()}, **options)
    for number in (3, 4, 5):
        without.round(honest(without.params, 8, number))
    differs = any(not np.array_equal(without.params[name], array) for name, array in whole.params.items())
    assert differs is (setting != "plain"), "the state is what makes the difference"


def test_started_with_another_model_the_saved_one_takes_its_place(tmp_path, caplog) -> None:
    options = SETTINGS["memory and Adam"] | {"state": tmp_path / "state.npz"}
    start = model() | {"steps": np.asarray(7)}
    whole = Job(start, **SETTINGS["memory and Adam"])
    run_rounds(whole, 6)
    run_rounds(Job(start, **options), 3)
    second = Job(start, **options)
    result = second.round(honest(start, 8, 99))
    assert result.metrics is None
    assert "takes its place after this round" in caplog.text
    assert second.kept() == set()
    assert second.reason("site-1") == "trained another model than the one of the saved state"
    assert "sent from the next round on" in second.record.note
    for number in (3, 4, 5):
        second.round(honest(second.params, 8, number))
    same(second.params, whole.params)
    assert [record.round for record in second.recorder.records] == [3, 4, 5, 6]


def test_a_job_that_starts_at_a_later_round_keeps_its_numbers(tmp_path) -> None:
    start = model()
    first = Job(start, state=tmp_path / "state.npz")
    run_rounds(first, 3)
    second = Job(first.params, state=tmp_path / "state.npz", first_round=3)
    run_rounds(second, 2)
    assert [record.round for record in second.recorder.records] == [3, 4]
    elsewhere = Job(start, first_round=5)
    run_rounds(elsewhere, 1)
    assert elsewhere.record.round == 5


def test_skipped_rounds_are_saved_as_they_are(tmp_path) -> None:
    path = tmp_path / "state.npz"
    start = model()
    job = Job(start, state=path)
    assert unchanged(job.round(honest(start, 2)))
    state = load_state(path, job.aggregator._server.writer)
    assert state.round == 1
    same(dict(state.arrays), start)


def test_bfloat16_resumes_with_the_same_bits(tmp_path) -> None:
    def replies(params, number):
        made = honest({name: tensor.float().numpy() for name, tensor in params.items()}, 8, number)
        for one in made.values():
            one.params = {name: torch.from_numpy(array) for name, array in one.params.items()}
        return made

    start = {"w": torch.linspace(-1, 1, 40).bfloat16()}
    whole = Job(dict(start), rule="centered-clipping")
    first = Job(dict(start), rule="centered-clipping", state=tmp_path / "state.npz")
    for number in range(4):
        whole.round(replies(whole.params, number))
    for number in range(2):
        first.round(replies(first.params, number))
    second = Job(dict(start), rule="centered-clipping", state=tmp_path / "state.npz")
    second.round(replies(second.params, 0))
    assert torch.equal(second.params["w"], first.params["w"])
    for number in (2, 3):
        second.round(replies(second.params, number))
    assert second.params["w"].dtype == torch.bfloat16
    assert torch.equal(second.params["w"], whole.params["w"])


def test_what_does_not_fit_stops_the_job_before_it_trains(tmp_path) -> None:
    path = tmp_path / "state.npz"
    run_rounds(Job(model(), state=path, server_optimizer=Adam()), 1)
    for start, options, message in (
        (model(), {"server_optimizer": SGD()}, "was saved by RobustAggregator with Adam"),
        ({"w": np.zeros(3, np.float32)}, {"server_optimizer": Adam()}, "another model"),
        (model(dtype=np.float64), {"server_optimizer": Adam()}, "of other types"),
    ):
        job = Job(start, state=path, **options)
        job.begin()
        assert message in job.panics[0]
        job.send("site-1", reply(start))
        assert unchanged(job.finish())
    path.write_bytes(path.read_bytes()[:-200])
    job = Job(model(), state=path, server_optimizer=Adam())
    job.begin()
    assert "not a state that fedra saved" in job.panics[0]


def test_a_state_that_cannot_be_written_stops_the_job(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    job = Job(model(), state=tmp_path / "file" / "state.npz")
    job.begin()
    assert job.panics
