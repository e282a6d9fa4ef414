from __future__ import annotations

import json
import logging
import threading
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.shareable import Shareable
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from tests.nvflare.job import KEY, Job, difference, honest, model, moved, reply, run_rounds

from fedra import FedRA, WarningLimits
from fedra.audit import read_trail, summarise
from fedra.nvflare import RobustAggregator
from fedra.nvflare.parameters import SentModel
from fedra.optimizers import Adam
from fedra.rules import Decision, Family, Rule
from fedra.server.spill import Spill

NAMES = [f"site-{place}" for place in range(1, 9)]


class Overflowing(Rule):
    """Somebody's rule that is wrong."""

    name = "overflowing"
    family = Family.IGNORANT

    def decide(self, cohort):
        return Decision(update=np.full(cohort.rows.dimension, np.inf))


def same(ours, theirs) -> None:
    assert list(ours) == list(theirs)
    for key, array in ours.items():
        assert type(array) is type(theirs[key])
        np.testing.assert_array_equal(array, theirs[key])


def unchanged(result: FLModel) -> bool:
    return result.params_type == ParamsType.DIFF and result.params == {}


def test_a_liar_captures_the_mean_and_not_ours() -> None:
    sent = model()
    lie = {name: np.full_like(array, 1000) for name, array in sent.items()}
    for rule, captured in (("fedavg", True), ("fedra", False)):
        job = Job(sent, rule=rule)
        result = job.round(honest(sent, 7) | {"site-8": reply(dict(lie), claim=1e9)})
        assert result.params_type == ParamsType.FULL
        assert bool(abs(result.params["fc.weight"] - sent["fc.weight"]).max() > 100) is captured
        assert ("site-8" in job.kept()) is captured


def test_the_model_keeps_keys_shapes_types_and_integers() -> None:
    sent = model() | {
        "half": np.ones(3, np.float16),
        "double": np.ones((2, 2)),
        "steps": np.asarray(7),
        "mask": np.asarray([True, False]),
        "alone": np.float32(2.0),
    }
    before = {key: np.array(value) for key, value in sent.items()}
    result = Job(sent).round(honest(sent, 8))
    assert list(result.params) == list(sent)
    for key, value in result.params.items():
        assert type(value) is type(sent[key])
        assert (value.dtype, value.shape) == (sent[key].dtype, sent[key].shape)
        trained = value.dtype.kind == "f"
        assert np.array_equal(value, sent[key]) is not trained
        np.testing.assert_array_equal(sent[key], before[key])  # the controller's own, never written to


def test_nested_dictionaries_and_keys_that_are_numbers() -> None:
    sent = {
        "body": {0: np.zeros(3, np.float32), "deep": {"w": np.ones((2, 2), np.float32)}},
        7: np.zeros(2, np.float32),
    }
    job = Job(sent)
    bad = moved(sent, 9)
    bad["body"]["deep"] = np.zeros((2, 2), np.float32)
    other = moved(sent, 9)
    other["body"]["deep"] = {"v": other["body"]["deep"]["w"]}
    result = job.round(honest(sent, 7) | {"site-8": reply(bad), "site-9": reply(other)})
    assert list(result.params) == ["body", 7]
    assert list(result.params["body"]) == [0, "deep"]
    assert (result.params["body"]["deep"]["w"] > 1).all()
    assert job.reason("site-8") == "its parameters, or a part of them, are 'ndarray', not a dictionary"
    assert job.reason("site-9") == "1 arrays instead of 1: lacks array 'w', has an unknown array 'v'"


@pytest.mark.parametrize("rule", ["fedra", "centered-clipping"])
def test_models_and_differences_in_one_round(rule: str) -> None:
    sent = model()
    whole = honest(sent, 8)
    mixed = honest(sent, 8)
    for name in NAMES[:4]:
        mixed[name] = reply(difference(sent, mixed[name].params), kind=ParamsType.DIFF)
    of_models = Job(sent, rule=rule).round(whole).params
    job = Job(sent, rule=rule)
    of_both = job.round(mixed).params
    assert len(job.kept()) >= 7
    for name, array in of_models.items():
        np.testing.assert_allclose(of_both[name], array, rtol=1e-5, atol=1e-6)


def test_a_model_sent_as_a_difference_is_left_out() -> None:
    sent = {"w": np.full(20, 5.0, np.float32)}
    job = Job(sent)
    result = job.round(honest(sent, 7) | {"site-8": reply(moved(sent, 9), kind=ParamsType.DIFF)})
    assert "site-8" not in job.kept()
    assert abs(result.params["w"] - 5).max() < 0.1


class Hostile:
    """An object of which nothing can be asked."""

    def __getattribute__(self, name):
        raise RuntimeError("\x1b[2J" * 100)

    __len__ = __iter__ = __eq__ = __hash__ = __str__ = __repr__ = __array__ = __float__ = __bool__ = None  # type: ignore[assignment]


class Unreadable(dict):
    """A dictionary that cannot be counted."""

    def __len__(self):
        raise MemoryError("no")


def _put(name, value):
    def change(params):
        params[name] = value

    return change


def _nan(value, name="fc.weight"):
    def change(params):
        params[name] = np.array(params[name])
        params[name].reshape(-1)[-1] = value

    return change


BAD_PARAMS = {
    "nan": (_nan(np.nan), "not finite"),
    "inf": (_nan(np.inf), "not finite"),
    "-inf in a scalar": (_nan(-np.inf, "scale"), "not finite"),
    "other shape": (_put("fc.weight", np.zeros((5, 4), np.float32)), "shape (5, 4)"),
    "no values": (_put("fc.weight", np.zeros((10**9, 0), np.float32)), "shape (1000000000, 0)"),
    "wide without memory": (
        _put("fc.weight", np.broadcast_to(np.float32(1), (10**6, 10**6))),
        "shape (1000000, 1000000)",
    ),
    "other key": (lambda p: p.update({"fc": p.pop("fc.weight")}), "lacks array 'fc.weight', has an unknown array 'fc'"),
    "missing key": (lambda p: p.pop("scale"), "lacks array 'scale'"),
    "extra key": (_put("extra", np.zeros(2, np.float32)), "unknown array 'extra'"),
    "integer key": (_put(3, np.zeros(2, np.float32)), "unknown array 3"),
    "control characters": (_put("\x1b[2J\n", 0), "unknown array '\\x1b[2J\\n'"),
    "text": (_put("fc.weight", "abc"), "is 'str', not a NumPy array"),
    "list": (_put("fc.weight", [1.0, 2.0]), "is 'list', not a NumPy array"),
    "none": (_put("fc.weight", None), "is 'NoneType', not a NumPy array"),
    "number": (_put("fc.weight", 1.5), "dtype float64"),
    "nested": (_put("fc.weight", {"a": {"b": 0}}), "is 'dict', not a NumPy array"),
    "text array": (_put("fc.weight", np.full((4, 5), "x")), "dtype <U1"),
    "complex": (_put("fc.weight", np.zeros((4, 5), np.complex128)), "dtype complex128"),
    "structured": (_put("fc.weight", np.zeros((4, 5), "f4,f4")), "dtype [("),
    "objects": (_put("fc.weight", np.full((4, 5), None)), "dtype object"),
    "float64": (_put("fc.weight", np.zeros((4, 5))), "dtype float64 instead of float32"),
    "integers": (_put("fc.weight", np.zeros((4, 5), np.int64)), "dtype int64"),
    "many keys": (lambda p: p.update({f"k{i}": 0 for i in range(200_000)}), "200004 arrays instead of 4"),
    "an object": (_put("fc.weight", Hostile()), "cannot be read"),
}


@pytest.mark.parametrize("case", BAD_PARAMS)
def test_arrays_that_cannot_be_used(case: str) -> None:
    change, reason = BAD_PARAMS[case]
    sent = model()
    bad = moved(sent, 99)
    change(bad)
    check_refused(reply(bad), reason)


BAD_REPLIES = {
    "parameters in a list": (lambda p: reply([1, 2]), "'list', not a dictionary"),
    "parameters an array": (lambda p: reply(np.zeros(3)), "'ndarray', not a dictionary"),
    "parameters not to be counted": (lambda p: reply(Unreadable(p)), "cannot be read: MemoryError"),
    "no type": (lambda p: reply(p, kind=None), "of type None"),
    "odd type": (lambda p: reply(p, kind="\x1b[31m"), "not FULL or DIFF"),
    "claim 1e300": (lambda p: reply(p, claim=1e300), "1e+300"),
    "claim 2**62": (lambda p: reply(p, claim=2**62), "2**53"),
    "claim 10**400": (lambda p: reply(p, claim=10**400), "inf"),
    "claim negative": (lambda p: reply(p, claim=-5), "-5"),
    "claim zero": (lambda p: reply(p, claim=0), "is 0"),
    "claim text": (lambda p: reply(p, claim="abc" * 10_000), "type str"),
    "claim nan": (lambda p: reply(p, claim=float("nan")), "nan"),
    "claim bool": (lambda p: reply(p, claim=True), "type bool"),
    "claim array": (lambda p: reply(p, claim=np.asarray([5])), "type ndarray"),
    "claim object": (lambda p: reply(p, claim=Hostile()), "type Hostile"),
    "too many metrics": (lambda p: reply(p, metrics={f"m{i}": 1.0 for i in range(200_000)}), "200000 metrics"),
}


@pytest.mark.parametrize("case", BAD_REPLIES)
def test_replies_that_cannot_be_used(case: str) -> None:
    make, reason = BAD_REPLIES[case]
    check_refused(make(moved(model(), 99)), reason)


def check_refused(bad: FLModel, reason: str) -> None:
    sent = model()
    job = Job(sent)
    start = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = job.round(honest(sent, 8) | {"site-9": bad})
    assert time.monotonic() - start < 5
    assert reason in job.reason("site-9")
    assert len(job.reason("site-9")) < 300
    assert job.reason("site-9").isprintable()
    without = Job(sent)
    same(result.params, without.round(honest(sent, 8)).params)
    assert not job.panics


def test_a_missing_claim_names_its_key_and_none_makes_all_alike() -> None:
    sent = model()
    replies = honest(sent, 8)
    for made in replies.values():
        del made.meta[KEY]
    job = Job(sent)
    assert unchanged(job.round(replies))
    assert job.reason("site-1") == "'NUM_STEPS_CURRENT_ROUND' is missing from its meta"
    assert {entry["claimed_quantity"] for entry in job.record.clients} == {None}
    job = Job(sent, quantity_key=None)
    job.round(replies)
    assert {entry["claimed_quantity"] for entry in job.record.clients} == {1.0}
    assert len(job.kept()) == 8
    job = Job(sent, quantity_key="samples")
    job.round({name: reply(moved(sent, 1), samples=30) for name in NAMES})
    assert {entry["claimed_quantity"] for entry in job.record.clients} == {30.0}


def test_meta_that_is_none_at_all() -> None:
    sent = model()
    job = Job(sent)
    job.begin()
    for name, good in honest(sent, 8).items():
        job.send(name, good)
    for odd in (None, 5, [], Hostile()):
        bad = reply(moved(sent, 3))
        bad.meta = odd
        job.aggregator.accept_model(bad)
    job.aggregator.accept_model(Hostile())  # type: ignore[arg-type]
    job.aggregator.accept_model(None)  # type: ignore[arg-type]
    job.finish()
    assert len(job.kept()) == 8
    unknown = [entry for entry in job.record.clients if entry["client"] == "unknown"]
    assert len(unknown) == 6
    assert all(entry["reason"] and not entry["kept"] for entry in unknown)


def test_deep_nesting_is_not_walked_through() -> None:
    deep: dict = {}
    for _ in range(100_000):
        deep = {"a": deep}
    sent = model()
    job = Job(sent)
    job.round(honest(sent, 8) | {"site-9": reply(moved(sent, 1) | {"fc.weight": deep})})
    assert "'dict'" in job.reason("site-9")
    while deep:  # or Python's own recursion would end the process when it is let go
        deep = deep.pop("a")


def test_texts_of_any_length_are_cut() -> None:
    sent = model()
    job = Job(sent)
    bad = moved(sent, 1)
    bad["\x1b]0;" + "x" * 10_000_000] = bad.pop("scale")
    job.round(honest(sent, 8) | {"site-9": reply(bad, claim=20), "y" * 5000: reply(moved(sent, 2), claim="z" * 10**7)})
    assert all(len(entry["client"]) <= 200 and len(entry["reason"]) < 300 for entry in job.record.clients)


def test_the_second_reply_of_a_client_is_not_used() -> None:
    sent = model()
    job = Job(sent)
    job.begin()
    for name, good in honest(sent, 8).items():
        job.send(name, good)
    job.send("site-1", reply(moved(sent, 50)))
    job.finish()
    assert sorted(entry["reason"] for entry in job.record.clients)[-1] == "another reply of the same client came first"
    assert len(job.kept()) == 8


def test_the_order_of_replies_does_not_matter() -> None:
    sent = model()
    forward, backward = Job(sent, rule="fedavg"), Job(sent, rule="fedavg")
    forward.round(honest(sent, 30))
    backward.round(dict(reversed(honest(sent, 30).items())))
    same(backward.params, forward.params)
    assert backward.record.clients == forward.record.clients


def test_the_model_is_read_once_a_round(monkeypatch) -> None:
    read = []

    class Counted(SentModel):
        def __init__(self, *arguments) -> None:
            read.append(1)
            super().__init__(*arguments)

    monkeypatch.setattr("fedra.nvflare.aggregator.SentModel", Counted)
    run_rounds(Job(model()), 2)
    assert len(read) == 2


def test_an_aggregator_that_was_never_started_says_so(caplog) -> None:
    aggregator = RobustAggregator()
    aggregator.reset_stats()
    aggregator.accept_model(reply(moved(model(), 1)))
    assert unchanged(aggregator.aggregate_model())
    assert "the job has not started" in caplog.text


def test_nobody_is_warned_of_for_being_unknown() -> None:
    sent = model()
    job = Job(sent, warn_at=WarningLimits(streak=1))
    job.begin()
    for name, made in honest(sent, 8).items():
        job.send(name, made)
    job.aggregator.accept_model(reply({"w": 0}))
    job.finish()
    assert job.reason("unknown")
    assert job.record.warnings == ()


def test_replies_without_parameters_are_on_record() -> None:
    sent = model()
    job = Job(sent, clients=[*NAMES, "site-9"])
    empty = {"site-8": reply({}), "site-9": reply(None), "site-1": reply({})}
    empty["site-9"].params = {}
    job.begin()
    for name, made in (honest(sent, 7) | {"site-8": empty["site-8"], "site-9": empty["site-9"]}).items():
        job.send(name, made)
    job.send("site-1", empty["site-1"])  # somebody under the name of one that did reply
    job.send("nobody", reply({}))
    job.finish()
    assert job.reason("site-8").startswith("sent no parameters")
    assert job.reason("site-9").startswith("sent no parameters")
    assert job.reason("site-1") == ""
    unknown = [entry["reason"] for entry in job.record.clients if entry["client"] == "unknown"]
    assert len(unknown) == 2
    assert len(job.kept()) == 7


def test_too_few_change_nothing_and_say_why() -> None:
    sent = model()
    job = Job(sent)
    assert unchanged(job.round(honest(sent, 3)))
    same(job.params, sent)
    assert "too few clients were left" in job.record.note
    job = Job(sent, rule=FedRA(clamp=True))
    assert not unchanged(job.round(honest(sent, 3)))


def test_rounds_without_anybody() -> None:
    sent = model()
    job = Job(sent)
    job.begin(fetching=3)
    assert unchanged(job.finish())
    assert job.record.note == "nobody replied"
    job.begin(fetching=0)
    job.send("site-1", reply(moved(sent, 1)))
    assert unchanged(job.finish())
    assert job.reason("site-1") == "no model was sent in this round"
    assert not unchanged(job.round(honest(sent, 8)))


def test_a_result_that_is_not_finite_changes_nothing() -> None:
    sent = model()
    job = Job(sent, rule=Overflowing())
    with np.errstate(all="ignore"):
        assert unchanged(job.round(honest(sent, 8)))
    assert "not finite" in job.record.note
    same(job.params, sent)


def test_metrics_are_averaged_over_kept_clients_and_nobody_can_take_them_away() -> None:
    sent = model()
    replies = honest(sent, 7)
    for place, made in enumerate(replies.values()):
        made.metrics = {"accuracy": 0.8 + 0.01 * place, "note": "text", "table": {"a": 1}, "bad": float("nan")}
    replies["site-1"].metrics = {"loss": 1e99, "accuracy": "high"}
    replies["site-2"].metrics = None
    far = {name: array + 1000 for name, array in sent.items()}
    replies["site-8"] = reply(far, metrics={"accuracy": 1e9})
    job = Job(sent)
    result = job.round(replies)
    assert job.kept() == set(NAMES[:7])
    assert set(result.metrics) == {"accuracy"}
    assert 0.82 <= result.metrics["accuracy"] <= 0.86
    assert job.record.metrics == result.metrics


def test_no_metrics_are_none() -> None:
    sent = model()
    replies = honest(sent, 8)
    for made in replies.values():
        made.metrics = None
    assert Job(sent).round(replies).metrics is None


def test_nothing_about_clients_is_sent_to_clients() -> None:
    sent = model()
    result = Job(sent).round(honest(sent, 7) | {"site-8": reply({"w": 0})})
    assert result.meta == {}
    assert result.optimizer_params is None


def test_claims_of_a_client_do_not_name_it() -> None:
    sent = model()
    job = Job(sent)
    spoof = reply(moved(sent, 3), claim="x", site_name="site-1", job_id="other")
    job.round(honest(sent, 7) | {"site-8": spoof})
    assert job.reason("site-8")
    assert job.record.run == "job-1"


def test_the_audit_trail_the_warnings_and_the_observers(tmp_path, caplog) -> None:
    trail = tmp_path / "new" / "audit.jsonl"
    sent = model()
    job = Job(sent, audit=trail, warn_at=WarningLimits(streak=2), clients=NAMES, state=tmp_path / "state.npz")
    assert trail.exists()
    with caplog.at_level(logging.INFO, logger="fedra"):
        for number in range(3):
            job.round(honest(job.params, 7, number) | {"site-8": reply({"w": 0})})
    job.fire(EventType.END_RUN)
    assert len(summarise(read_trail(trail))) == 8
    lines = [json.loads(line) for line in trail.read_text().splitlines()]
    rounds = [line for line in lines if line["kind"] == "round"]
    assert [line["round"] for line in rounds] == [0, 1, 2]
    assert {line["run"] for line in lines} == {"job-1"}
    assert rounds[1]["warnings"] == [
        "left out in every one of its last rounds: site-8 (2); if honest, its data is lost",
    ]
    assert rounds[0]["metrics"] == {"accuracy": pytest.approx(0.9)}
    assert job.recorder.calls == ["start", "round", "round", "round", "end ['accuracy']"]
    assert job.recorder.runs[0].platform == "nvflare"
    assert "fedra: train round 2: 7 kept, 1 rejected" in caplog.text


def test_the_constructor_opens_nothing(tmp_path) -> None:
    RobustAggregator(audit=tmp_path / "a" / "audit.jsonl", state=tmp_path / "s" / "state.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_trail_that_cannot_be_written_stops_the_job(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    job = Job(model(), audit=tmp_path / "file" / "audit.jsonl")
    assert "file" in job.panics[0]
    assert unchanged(job.round(honest(model(), 8)))
    assert len(job.panics) == 1


def test_a_model_that_cannot_be_worked_with_stops_the_job() -> None:
    for bad in ({"w": np.zeros(3, np.complex64)}, {"w": "text"}, {"a.b": np.zeros(2), "a": {"b": np.zeros(2)}}):
        job = Job(bad)
        job.begin()
        assert "the model" in job.panics[0]


def test_a_controller_that_does_not_say_who_sent_what_is_refused() -> None:
    job = Job(model())
    assert job.aggregator.accept(Shareable(), job.context) is False
    assert "needs a FedAvg controller" in job.panics[0]


def test_a_controller_that_would_add_the_model_onto_the_model_is_refused() -> None:
    job = Job(model())
    controller = SimpleNamespace(aggregator=job.aggregator, optimizer_args={})
    runner = SimpleNamespace(config=SimpleNamespace(workflows=[SimpleNamespace(controller=controller)]))
    job.fire(EventType.START_RUN, **{FLContextKey.RUNNER: runner})
    assert "treats the aggregator's model as a difference" in job.panics[0]


def test_a_full_disk_stops_the_job_only_where_that_is_asked_for(tmp_path, monkeypatch, caplog) -> None:
    sent = model()
    for policy in ("warn", "stop"):
        job = Job(sent, state=tmp_path / policy / "state.npz", on_disk_error=policy)
        job.begin()
        for name, made in honest(sent, 8).items():
            job.send(name, made)
        with monkeypatch.context() as patch:

            def full(*_, **__):
                raise OSError(28, "No space left on device")

            patch.setattr(np, "savez", full)
            if policy == "warn":
                assert not unchanged(job.finish())
                assert "could not be written" in caplog.text
            else:
                with pytest.raises(OSError, match="No space"):
                    job.finish()


def test_replies_from_several_threads_are_all_there() -> None:
    sent = model()
    replies = honest(sent, 40)
    job = Job(sent)
    job.begin()
    threads = [threading.Thread(target=job.send, args=item) for item in replies.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    job.finish()
    assert len(job.record.clients) == 40


def test_the_number_of_the_jobs_clients_is_the_rules_n() -> None:
    sent = model()
    seen = []
    job = Job(sent, rule=FedRA(setting="fixed", malicious_ratio=0.2), clients=[f"site-{i}" for i in range(40)])
    job.round(honest(sent, 8))
    seen.append(job.record.num_malicious)
    job = Job(sent, rule=FedRA(setting="fixed", malicious_ratio=0.2), clients=NAMES[:6])
    job.round(honest(sent, 6))
    seen.append(job.record.num_malicious)
    assert seen == [2, 1]


def test_a_server_optimizer_steps() -> None:
    sent = model()
    job = Job(sent, server_optimizer=Adam(lr=0.5))
    run_rounds(job, 2)
    assert abs(job.params["fc.weight"] - sent["fc.weight"] - 1.0).max() < 0.05


@pytest.mark.parametrize("rule", ["fedra", "norm-bound", "median"])
def test_replies_on_disk_give_the_same_model(rule, tmp_path) -> None:
    sent = model()
    found = []
    for folder in (None, tmp_path / "spill"):
        job = Job(sent, rule=rule, spill=folder)
        result = job.round(honest(sent, 8))
        found.append({name: array.tobytes() for name, array in result.params.items()})
    assert found[0] == found[1]
    assert list((tmp_path / "spill").iterdir()) == []


def test_a_reply_is_on_disk_once_it_was_read(tmp_path) -> None:
    sent = SentModel(model(), None)
    spill = Spill(tmp_path, logging.getLogger("tests"))
    row = sent.read(moved(model(), 1), difference=False, as_update=True, spill=spill)
    assert isinstance(row, np.memmap)
    expected = sent.read(moved(model(), 1), difference=False, as_update=True)
    assert row.tobytes() == expected.tobytes()
