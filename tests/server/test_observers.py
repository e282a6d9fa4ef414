"""Several observers of one run: none of them costs the run, or another one its calls."""

import logging

import pytest

from fedra.server import Observer, RoundRecord, RunInfo
from fedra.server.observers import Observers

RUN = RunInfo(run="r", platform="simulation", rule="fedra")


def record(number=1):
    return RoundRecord(
        run="r", round=number, phase="train", time=0.0, rule="fedra", num_malicious=None, note="", clients=[]
    )


class Listening(Observer):
    """Writes down its calls, and raises what it is given at one of them."""

    def __init__(self, fails="", error=None):
        self.calls = []
        self.fails, self.error = fails, error

    def _called(self, name, *rest):
        self.calls.append((name, *rest))
        if name == self.fails:
            raise self.error

    def start(self, run):
        self._called("start", run)

    def round(self, record):
        self._called("round", record.round)

    def end(self, run, summary):
        self._called("end", summary)

    @property
    def names(self):
        return [name for name, *_ in self.calls]


def watched(*observers, rounds=2, **settings):
    watching = Observers(observers, **settings)
    watching.start(RUN)
    for number in range(1, rounds + 1):
        watching.round(record(number))
    watching.end(RUN, {"accuracy": 0.5})


def test_each_is_called_in_order():
    first, second = Listening(), Listening()
    watched(first, second)
    assert first.calls == [("start", RUN), ("round", 1), ("round", 2), ("end", {"accuracy": 0.5})]
    assert second.calls == first.calls
    assert len(Observers([first, second])) == 2


def test_an_observer_without_methods_watches_in_silence(caplog):
    watched(Observer())
    assert not caplog.records


def test_nobody_watching_is_fine():
    watched()
    assert len(Observers()) == 0


def test_one_that_cannot_start_does_not_watch_and_the_others_do(caplog):
    failing, other = Listening("start", RuntimeError("no key")), Listening()
    watched(failing, other)
    assert failing.names == ["start"]
    assert other.names == ["start", "round", "round", "end"]
    assert caplog.messages == ["fedra: Listening failed, the run continues: RuntimeError: no key"]


def test_one_that_could_not_start_may_start_the_next_run():
    failing = Listening("start", RuntimeError("no key"))
    watching = Observers([failing])
    watching.start(RUN)
    failing.fails = ""
    watching.start(RUN)
    watching.round(record())
    assert failing.names == ["start", "start", "round"]


@pytest.mark.parametrize("place", [0, 1], ids=["first", "last"])
@pytest.mark.parametrize("fails", ["round", "end"])
def test_one_that_fails_is_still_called_and_so_are_the_others(fails, place):
    failing, other = Listening(fails, KeyError("x")), Listening()
    watched(*([failing, other] if place == 0 else [other, failing]))
    assert failing.names == other.names == ["start", "round", "round", "end"]


def test_what_fails_every_round_is_reported_once_and_counted(caplog):
    watched(Listening("round", ValueError("bad")), rounds=50)
    assert caplog.messages == [
        "fedra: Listening failed, the run continues: ValueError: bad",
        "fedra: Listening failed 50 times in this run",
    ]


def test_each_run_reports_anew(caplog):
    failing = Listening("round", ValueError("bad"))
    watching = Observers([failing])
    for _ in range(2):
        watching.start(RUN)
        watching.round(record())
        watching.end(RUN, {})
    assert len(caplog.messages) == 2


def test_messages_call_it_by_its_label(caplog):
    class Named(Listening):
        label = "the dashboard"

    watched(Named("round", ValueError("bad")))
    assert all(message.startswith("fedra: the dashboard failed") for message in caplog.messages)


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("cannot say")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("a\nb\x1b[2J" + "c" * 100_000), "ValueError: a b [2Jccc"),
        (Mute(), "the run continues: Mute: "),
        (MemoryError(), "MemoryError: "),
        (StopIteration(3), "StopIteration: 3"),
    ],
)
def test_whatever_it_raises_is_a_short_message_of_one_line(error, reason, caplog):
    watched(Listening("round", error), rounds=1)
    (message,) = caplog.messages
    assert reason in message
    assert len(message) < 500
    assert message.isprintable()


def test_errors_of_the_disk_are_left_to_the_caller_each_time():
    noted = []
    full = OSError(28, "No space left on device")
    failing, other = Listening("round", full), Listening()
    watched(failing, other, on_disk_error=lambda name, error: noted.append((name, error)))
    assert noted == [("Listening", full)] * 2
    assert other.names == ["start", "round", "round", "end"]


def test_errors_of_the_disk_are_like_others_where_the_caller_does_not_ask(caplog):
    watched(Listening("round", OSError(28, "No space left on device")), rounds=1)
    assert caplog.messages == [
        "fedra: Listening failed, the run continues: OSError: [Errno 28] No space left on device"
    ]


def test_the_callers_logger_is_used(caplog):
    watched(Listening("end", ValueError("bad")), logger=logging.getLogger("another"))
    assert [entry.name for entry in caplog.records] == ["another"]


@pytest.mark.parametrize("fails", ["start", "round", "end"])
def test_an_interrupt_is_not_held_back(fails):
    with pytest.raises(KeyboardInterrupt):
        watched(Listening(fails, KeyboardInterrupt()))


def test_after_an_interrupted_start_those_that_started_are_ended():
    first, second, third = Listening(), Listening("start", KeyboardInterrupt()), Listening()
    watching = Observers([first, second, third])
    with pytest.raises(KeyboardInterrupt):
        watching.start(RUN)
    watching.end(RUN, {})
    assert first.names == ["start", "end"]
    assert second.names == ["start"]
    assert third.names == []


def test_an_interrupted_end_still_reaches_the_others():
    first, second, third = Listening("end", KeyboardInterrupt()), Listening("end", ValueError("x")), Listening()
    with pytest.raises(KeyboardInterrupt):
        watched(first, second, third)
    assert second.names[-1] == third.names[-1] == "end"


def test_an_end_comes_once():
    listening = Listening()
    watching = Observers([listening])
    watching.end(RUN, {})
    watching.start(RUN)
    watching.end(RUN, {})
    watching.end(RUN, {})
    watching.round(record())
    assert listening.names == ["start", "end"]


def test_a_summary_that_one_changes_is_whole_for_the_others():
    class Greedy(Observer):
        def end(self, run, summary):
            summary.clear()

    listening, figures = Listening(), {"accuracy": 0.5}
    watching = Observers([Greedy(), listening])
    watching.start(RUN)
    watching.end(RUN, figures)
    assert listening.calls[-1] == ("end", {"accuracy": 0.5})
    assert figures == {"accuracy": 0.5}


@pytest.mark.parametrize("observers", [Observer(), "tensorboard", 5, None], ids=["one", "text", "number", "none"])
def test_observers_are_a_list(observers):
    with pytest.raises(TypeError, match=r"give a list of instances of fedra\.server\.Observer"):
        Observers(observers)


@pytest.mark.parametrize("observer", [Listening, "tensorboard", object()], ids=["class", "text", "object"])
def test_each_of_them_is_an_observer(observer):
    with pytest.raises(TypeError, match=r"give instances of fedra\.server\.Observer"):
        Observers([Observer(), observer])


def test_one_of_them_twice_is_an_error():
    observer = Observer()
    with pytest.raises(ValueError, match="has one of them twice"):
        Observers([observer, Observer(), observer])


def test_any_iterable_is_taken_once():
    listening = Listening()
    watching = Observers(iter([listening]))
    for _ in range(2):
        watching.start(RUN)
        watching.end(RUN, {})
    assert listening.names == ["start", "end"] * 2
