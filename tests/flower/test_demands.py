from __future__ import annotations

import flwr.server.strategy as older
import flwr.serverapp.strategy as current
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.flower.both import Accountant
from tests.flower.test_npy import saved

from fedra.flower.demands import KEY_NORM_BIT, no_model_note, refuse_unfit
from fedra.flower.npy import npy_model_form, view_npy
from fedra.server.layout import Layout
from fedra.server.replies import Reply

SENT = {"w": saved(np.ones(3, np.float32)), "n": saved(np.asarray(3))}
FORM = npy_model_form(SENT)


class ByLoss(current.FedAvg):
    train_loss_key = "loss"


def reply(values=(1.5, 1.5, 1.5), fault: str = "", kinds=None, **metrics) -> Reply:
    made = Reply(client=1, message=None, fault=fault, metrics=metrics)
    kinds = dict.fromkeys(metrics, "one number") if kinds is None else kinds
    made.layout = Layout(values=tuple(sorted(kinds.items())))
    arrays = {"w": saved(np.array(values, np.float32)), "n": SENT["n"]}
    made.views = [] if fault else FORM.read(arrays, view_npy)
    return made


def refuse(inner, replies):
    refuse_unfit(inner, replies, FORM, SENT)
    return [each.fault for each in replies]


def test_a_strategy_that_demands_nothing_refuses_nobody():
    odd = [reply((1, 1, 1)), reply(loss=-1.0), reply(fault="spoilt")]
    assert refuse(current.FedAvg(), odd) == ["", "", "spoilt"]


def test_losses_to_weigh_by():
    replies = [reply(loss=1.0), reply(loss=2.0), reply(loss=3.0), reply(loss=0.0), reply(loss=1e4)]
    replies += [reply(loss=-0.5), reply(loss=[1.0]), reply(), reply(fault="spoilt", loss=1.0)]
    faults = refuse(ByLoss(), replies)
    assert faults[:4] == ["", "", "", ""]
    assert faults[4] == "metric 'loss' is 10000, more than 2000: far beyond most clients'"
    assert faults[5] == "metric 'loss' is -0.5; a loss to weigh by is not negative"
    assert faults[6] == faults[7] == "lacks metric 'loss' as one number, by which the strategy weighs"
    assert faults[8] == "spoilt"
    assert replies[3].metrics["loss"] == pytest.approx(0.2)


@given(st.lists(st.one_of(st.floats(-1e100, 1e100), st.none(), st.just([1.0])), max_size=9))
def test_losses_handed_on_are_within_four_orders_of_magnitude(losses):
    replies = [reply(loss=loss) for loss in losses]
    refuse(ByLoss(), replies)
    usable = [each.metrics["loss"] for each in replies if not each.fault]
    assert all(loss >= 0 for loss in usable)
    if usable and min(usable) > 0:
        assert max(usable) / min(usable) <= 10_000 * max(1, 1 / np.median(usable)) * 1.001


LEARNING = {
    "message": current.DifferentialPrivacyClientSideAdaptiveClipping(current.FedAvg(), 0.1, 7),
    "older": older.DifferentialPrivacyClientSideAdaptiveClipping(older.FedAvg(), 0.1, 7),
}


@pytest.mark.parametrize("inner", LEARNING.values(), ids=LEARNING)
def test_whether_a_client_clipped(inner):
    usual = [reply(**{KEY_NORM_BIT: 1}) for _ in range(3)]
    listed = reply(kinds={KEY_NORM_BIT: "a list of 1"})
    faults = refuse(inner, [*usual, reply(), listed])
    assert faults[:3] == ["", "", ""]
    assert all("lacks metric 'norm_bit' as most clients sent it" in fault for fault in faults[3:])
    assert refuse(inner, [reply(), reply()]) == ["", ""], "nobody sends it: the wrapper says so itself"


CLIPPING = {
    "message fixed": current.DifferentialPrivacyServerSideFixedClipping(current.FedAvg(), 0.1, 1.0, 7),
    "message adaptive": current.DifferentialPrivacyServerSideAdaptiveClipping(current.FedAvg(), 0.1, 7),
    "older fixed": older.DifferentialPrivacyServerSideFixedClipping(older.FedAvg(), 0.1, 1.0, 7),
    "older adaptive": older.DifferentialPrivacyServerSideAdaptiveClipping(older.FedAvg(), 0.1, 7),
}


@pytest.mark.parametrize("inner", CLIPPING.values(), ids=CLIPPING)
def test_updates_that_cannot_be_clipped(inner):
    faults = refuse(inner, [reply((1, 1, 1)), reply((1, 1, 1.5)), reply(fault="spoilt"), reply((np.nan, 1, 1))])
    assert faults[0] == "its update is zero, which the inner strategy cannot clip"
    assert faults[1:3] == ["", "spoilt"]


def test_why_there_is_no_model():
    inner = current.FedAvg()
    assert no_model_note(inner, 5) == "the inner strategy returned no model from 5 kept replies"
    inner.accountant = Accountant()
    assert "privacy accountant" in no_model_note(inner, 5)
