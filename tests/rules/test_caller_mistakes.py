"""The caller's own mistakes raise, and say what to do."""

import numpy as np
import pytest

import fedra

GOOD = np.eye(8)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((GOOD, [1] * 7), ValueError, "8 updates but 7 quantities; give one quantity for each update"),
        ((list(GOOD), [1] * 9), ValueError, "8 updates but 9 quantities"),
        ((GOOD, [1] * 8, ["a"]), ValueError, "8 updates but 1 client_ids; give one identifier"),
        ((GOOD, [1] * 8, 5), TypeError, "client_ids=5; give a sequence of 8 identifiers"),
        ((GOOD, [1] * 8, "abcdefgh"), TypeError, "client_ids='abcdefgh'"),
        ((GOOD[0], [1] * 8), ValueError, r"shape \(8,\); give an \(n, d\) matrix or a sequence of n vectors"),
        ((np.zeros((2, 2, 2)), [1] * 2), ValueError, r"shape \(2, 2, 2\)"),
        ((None, [1] * 8), ValueError, "give an .n, d. matrix"),
        (("updates", [1] * 8), ValueError, "give an .n, d. matrix"),
        ((GOOD, 5), ValueError, r"quantities have shape \(\); give n numbers"),
        ((GOOD, np.ones((8, 1))), ValueError, r"quantities have shape \(8, 1\)"),
        ((GOOD, None), ValueError, "give n numbers"),
    ],
)
def test_arguments_that_do_not_fit_together(arguments, error, message):
    for name in ("fedavg", "median", "fedra"):
        with pytest.raises(error, match=message):
            fedra.make_rule(name)(*arguments)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
def test_a_wrong_number_of_threads(threads):
    with pytest.raises(ValueError, match=f"threads={threads!r}; give a whole number of at least 1, or None"):
        fedra.FedAvg()(GOOD, [1] * 8, threads=threads)


def test_any_whole_number_of_threads_is_taken():
    assert fedra.FedAvg()(GOOD, [1] * 8, threads=np.int64(2)).kept.all()


def test_a_tensor_that_wants_gradients_is_named_as_such():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"updates of type Tensor cannot be read as an array: .*detach"):
        fedra.FedAvg()(torch.ones(8, 3, requires_grad=True), [1] * 8)


@pytest.mark.parametrize("name", ["trimmed-mean", "krum", "multi-krum", "bulyan", "fedra"])
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"malicious_ratio": 0.5}, ValueError, "malicious_ratio=0.5; give a number from 0 up to, not including, 0.5"),
        ({"malicious_ratio": 1}, ValueError, "malicious_ratio=1; give a number from 0"),
        ({"malicious_ratio": -0.1}, ValueError, "malicious_ratio=-0.1"),
        ({"malicious_ratio": float("nan")}, ValueError, "malicious_ratio=nan"),
        ({"malicious_ratio": "0.1"}, TypeError, "malicious_ratio='0.1'; give a number"),
        ({"num_malicious": -1}, ValueError, "num_malicious=-1; give a whole number of at least 0"),
        ({"num_malicious": 1.0}, TypeError, "num_malicious=1.0; give a whole number"),
        ({"num_malicious": True}, TypeError, "num_malicious=True"),
        ({"clamp": "yes"}, TypeError, "clamp='yes'; give True or False"),
    ],
)
def test_parameters_about_malicious_clients(name, parameters, error, message):
    with pytest.raises(error, match=message):
        fedra.make_rule(name, **parameters)


def test_how_many_to_select_is_a_whole_number():
    with pytest.raises(ValueError, match="num_selected=0"):
        fedra.MultiKrum(num_selected=0)
    with pytest.raises(TypeError, match="num_selected='3'"):
        fedra.MultiKrum(num_selected="3")
