from __future__ import annotations

import logging

import pytest

from fedra.server.disk import DiskPolicy

LOGGER = logging.getLogger("tests.disk")


def failing(text: str):
    def write() -> None:
        raise OSError(text)

    return write


def test_warn_goes_on(caplog):
    policy = DiskPolicy("warn", LOGGER)
    policy.attempt("the state", failing("no space left"))
    policy.settle()
    assert "the state could not be written, the run continues without it: no space left" in caplog.text


def test_stop_raises_the_first_error_once_all_was_tried(caplog):
    policy = DiskPolicy("stop", LOGGER)
    done = []
    policy.attempt("the state", failing("first"))
    policy.note("the audit trail", OSError("second"))
    policy.attempt("something else", lambda: done.append(1))
    with pytest.raises(OSError, match="first"):
        policy.settle()
    policy.settle()
    assert done == [1]
    assert "the audit trail could not be written, the run ends with this round: second" in caplog.text


def test_other_errors_are_not_the_disks():
    def write() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        DiskPolicy("warn", LOGGER).attempt("the state", write)


def test_unknown_policies_are_refused():
    with pytest.raises(ValueError, match=r"on_disk_error.*stop, warn"):
        DiskPolicy("ignore", LOGGER)
