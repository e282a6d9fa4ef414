"""Quantities: the draws of the paper, laws that share all samples out, stated numbers, files that may be anything."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.data import DATASETS, QUANTITY_LAWS, client_quantities, lognormal_quantities, parse_quantities
from fedra.data.quantities import Stated, apportioned
from fedra.seeding import generator

TABLE_1 = {
    "mnist": (60_000, 3025, 179.28, 6820),
    "cifar10": (50_000, 3115, 200.14, 8933),
    "mind": (71_068, 2880, 299.61, 9398),
}
LAWS = st.one_of(
    st.floats(0, 100).map(lambda sigma: f"lognormal sigma={sigma}"),
    st.floats(0, 100).map(lambda s: f"zipf s={s}"),
    st.sampled_from(["lognormal", "zipf", "equal"]),
)


def one_by_one(num_samples: int, seed: int, sigma: float, mu: float) -> list[int]:
    """The specification's procedure, a client at a time."""
    rng = generator(seed, "partition/quantities")
    quantities: list[int] = []
    while (left := num_samples - sum(quantities)) > 0:
        quantities.append(min(left, max(1, math.floor(rng.lognormal(mu, sigma)))))
    return quantities


@given(st.integers(1, 3000), st.integers(0, 2**40), st.floats(0, 4), st.floats(-3, 3))
def test_quantities_are_those_drawn_one_by_one(num_samples: int, seed: int, sigma: float, mu: float) -> None:
    quantities = lognormal_quantities(num_samples, sigma=sigma, mu=mu, seed=seed)
    assert quantities.dtype == np.int64
    assert quantities.tolist() == one_by_one(num_samples, seed, sigma, mu)


def test_many_clients_span_several_blocks() -> None:
    quantities = lognormal_quantities(20_000, sigma=0.5, mu=0.0, seed=3)
    assert len(quantities) > 8192
    assert quantities.tolist() == one_by_one(20_000, 3, 0.5, 0.0)


@pytest.mark.parametrize("name", TABLE_1)
def test_default_seeds_are_near_the_papers_table(name: str) -> None:
    num_samples, clients, std, largest = TABLE_1[name]
    quantities = lognormal_quantities(num_samples, seed=DATASETS[name].partition_seed)
    assert quantities.sum() == num_samples
    assert len(quantities) == pytest.approx(clients, rel=0.05)
    assert quantities.std(ddof=1) == pytest.approx(std, rel=0.05)
    assert quantities.max() == pytest.approx(largest, rel=0.05)


@pytest.mark.parametrize(
    ("name", "num_samples", "clients", "largest"),
    [
        ("mnist", 60_000, 3060, 7109),
        ("cifar10", 50_000, 3092, 8890),
        ("mind", 71_068, 2912, 9471),
        ("fashion-mnist", 60_000, 3060, 7109),
        ("huffpost", 25_830, 1291, 3800),
        ("digits", 1_438, 140, 280),
    ],
)
def test_default_partitions_never_change(name: str, num_samples: int, clients: int, largest: int) -> None:
    quantities = lognormal_quantities(num_samples, seed=DATASETS[name].partition_seed)
    assert (len(quantities), quantities.max()) == (clients, largest)


def test_enormous_draws_are_cut_to_the_data() -> None:
    assert lognormal_quantities(10, sigma=1.0, mu=600.0, seed=0).tolist() == [10]


@pytest.mark.parametrize(
    ("arguments", "kind", "problem"),
    [
        ({"num_samples": 0}, ValueError, "num_samples=0; give a whole number of at least 1"),
        ({"num_samples": 2.0}, TypeError, "num_samples=2.0; give a whole number"),
        ({"sigma": -1.0}, ValueError, "sigma=-1.0; give a finite number of at least 0"),
        ({"mu": math.nan}, ValueError, "mu=nan; give a finite number"),
        ({"mu": None}, TypeError, "mu=None; give a finite number"),
        ({"seed": -1}, ValueError, "seed is -1"),
    ],
)
def test_impossible_quantities_are_refused(arguments: dict[str, Any], kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        lognormal_quantities(**({"num_samples": 10, "seed": 0} | arguments))


@given(LAWS, st.integers(1, 300), st.integers(0, 5000), st.integers(0, 2**40))
def test_all_samples_are_shared_out_and_nobody_has_none(law: str, clients: int, more: int, seed: int) -> None:
    quantities = client_quantities(clients + more, num_clients=clients, quantities=law, seed=seed)
    assert quantities.dtype == np.int64
    assert len(quantities) == clients
    assert quantities.sum() == clients + more
    assert quantities.min() >= 1
    again = client_quantities(clients + more, num_clients=clients, quantities=law, seed=seed)
    assert quantities.tolist() == again.tolist()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(0, 10**6))
def test_shares_are_in_proportion_but_for_less_than_one_sample(sizes: list[float], rest: int) -> None:
    shares = np.array([1.0, *sizes])
    found = apportioned(len(shares) + rest, shares)
    assert found.sum() == len(shares) + rest
    assert np.abs(found - 1 - rest * shares / shares.sum()).max() < 1 + 1e-9


def test_each_law_is_the_one_it_is_called() -> None:
    equal = client_quantities(1438, num_clients=10, quantities="equal", seed=0)
    assert sorted(equal) == [143] * 2 + [144] * 8
    ranked = np.sort(client_quantities(10**7, num_clients=50, quantities="zipf s=1.5", seed=0))[::-1]
    np.testing.assert_allclose(ranked / ranked[0], np.arange(1, 51) ** -1.5, rtol=1e-3)
    drawn = client_quantities(10**9, num_clients=5000, quantities="lognormal sigma=1.5", seed=0)
    assert np.log(drawn).std() == pytest.approx(1.5, rel=0.05)
    narrow, wide = (
        client_quantities(1438, num_clients=10, quantities=f"lognormal sigma={sigma}", seed=0) for sigma in (0.5, 2)
    )
    assert narrow.max() < wide.max()


@pytest.mark.parametrize("law", ["lognormal sigma=1", "zipf s=1.2"])
def test_another_seed_draws_other_quantities(law: str) -> None:
    first, other = (client_quantities(5000, num_clients=30, quantities=law, seed=seed) for seed in (0, 1))
    assert first.tolist() != other.tolist()


@given(st.integers(1, 3000), st.integers(0, 2**40))
def test_without_a_number_of_clients_they_come_until_the_data_are_used_up(num_samples: int, seed: int) -> None:
    usual = lognormal_quantities(num_samples, seed=seed).tolist()
    assert client_quantities(num_samples, seed=seed).tolist() == usual
    assert client_quantities(num_samples, quantities="lognormal sigma=3", seed=seed).tolist() == usual


def test_a_narrower_law_has_the_same_mean() -> None:
    quantities = client_quantities(10**6, quantities="lognormal sigma=0.5", seed=0)
    assert quantities.mean() == pytest.approx(20, rel=0.05)


def test_stated_numbers_are_taken_as_they_are(tmp_path: Path) -> None:
    for text in ("90,40,7", " 90, 40 ,7 "):
        assert client_quantities(137, quantities=text, seed=0).tolist() == [90, 40, 7]
    for name, content in {
        "a.txt": "90\n40\n7\n",
        "b.csv": "\ufeff90,40\r\n\r\n7\r\n",
        "C.TXT": "# beds\n 90 \n40\n7",
    }.items():
        (tmp_path / name).write_text(content, encoding="utf-8", newline="")
        law = parse_quantities(str(tmp_path / name))
        assert law.text == "90,40,7"
        assert law.quantities(1000, num_clients=3, seed=0).tolist() == [90, 40, 7]


@given(LAWS)
def test_a_law_has_one_text_which_reads_as_itself(text: str) -> None:
    law = parse_quantities(text)
    assert parse_quantities(law.text) == law


@given(st.lists(st.integers(1, 10**12 - 1), min_size=1, max_size=50).map(tuple))
def test_numbers_too(counts: tuple[int, ...]) -> None:
    assert parse_quantities(Stated(counts).text) == Stated(counts)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"quantities": "equal"}, "quantities='equal' needs the number of clients; give num_clients"),
        ({"quantities": "zipf s=1.2"}, "quantities='zipf s=1.2' needs the number of clients"),
        (
            {"quantities": "zipf", "num_clients": 101},
            "num_clients=101, but there are 100 training .* at most 100",
        ),
        ({"num_clients": 0}, "num_clients=0; give a whole number of at least 1"),
        ({"quantities": "zpif"}, r"quantities='zpif'; did you mean 'zipf'\?"),
        ({"quantities": "zipf a=2"}, "quantities 'zipf' has no parameter 'a'; valid: s"),
        ({"quantities": "zipf s=-1"}, "s of quantities=-1; give a finite number"),
        ({"quantities": "lognormal sigma=nan"}, "sigma of quantities=nan"),
        ({"quantities": ""}, "quantities '' has no name; give"),
        ({"quantities": "lognormal 'sigma"}, "No closing quotation; give"),
        ({"quantities": "5,0"}, "quantities has '0' for client 2 of 2; write a whole number of at least 1"),
        ({"quantities": "5,-3"}, "quantities has '-3' for client 2 of 2"),
        ({"quantities": "5,,3"}, "quantities has '' for client 2 of 3"),
        ({"quantities": "5,1000000000000"}, "quantities has '1000000000000' for client 2"),
        ({"quantities": "60,41"}, "quantities add up to 101, but there are 100 training samples; give smaller ones"),
        ({"quantities": "60,40", "num_clients": 3}, "num_clients=3, but quantities has 2 numbers"),
        ({"quantities": "none.txt"}, "there is no file none.txt with quantities; give"),
    ],
)
def test_descriptions_that_make_no_sense_are_told(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        client_quantities(100, seed=0, **given)


def test_a_law_that_is_no_text_is_told() -> None:
    with pytest.raises(TypeError, match="quantities=3; give a text"):
        client_quantities(100, quantities=3, seed=0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sigma of quantities='wide'"):
        parse_quantities("lognormal sigma=wide")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no numbers"),
        (b"\n \n", "has no numbers"),
        (b"client,quantity\n1,5\n", "has 'client' for client 1 of 4"),
        (b"5\n2.5\n", "has '2.5' for client 2 of 2"),
        (b"5\n1e9999\n", "has '1e9999' for client 2"),
        (b"\xff\xfe5\x00", "is no text"),
        (b"5\x1b[2J\n", r"for client 1 of 1"),
        ("٣\n".encode(), "for client 1 of 1"),
        (b"1" * 5000, "for client 1 of 1"),
        (b"1\n" * 20_000, "20,000 numbers in 39,999 characters, 32,768 at most; give a law"),
        (b"1\n" * (1 << 20), 'has more than 1,048,576 bytes.*give "lognormal'),
    ],
)
def test_a_file_may_hold_anything(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "sizes.txt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        parse_quantities(str(file))
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(ValueError, match="is a pipe or a device, not a file"):
        parse_quantities(str(tmp_path / "pipe.txt"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a folder, not a file"):
        parse_quantities(str(tmp_path / "folder.csv"))


def test_every_law_is_on_the_list() -> None:
    assert {name: law.name for name, law in QUANTITY_LAWS.items()} == {name: name for name in QUANTITY_LAWS}
