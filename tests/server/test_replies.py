from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.server.faults import Unusable
from fedra.server.layout import Layout
from fedra.server.replies import Reply, read_all

ERRORS = [
    None,
    Unusable("too short"),
    ValueError("\x1b[31m" + "x" * 500),
    KeyError("missing"),
    RecursionError(),
    MemoryError(),
    UnicodeError("\ud800"),
]
OWN = Layout(arrays="arrays")


@given(
    st.lists(
        st.tuples(st.one_of(st.integers(0, 3), st.text(max_size=2), st.just([1])), st.sampled_from(range(len(ERRORS)))),
        max_size=8,
    ),
    st.booleans(),
)
def test_no_reply_makes_it_raise(sent, limited):
    """Whoever sent it, whatever is raised when it is read; an unhashable client included."""
    asked = frozenset([0, 1, "a"]) if limited else None
    filled = []

    def fill(reply: Reply) -> None:
        filled.append(reply.client)
        if (error := ERRORS[reply.message]) is not None:
            raise error

    replies = read_all([Reply(client=client, message=place) for client, place in sent], fill, asked, OWN)
    assert [reply.client for reply in replies] == [client for client, _ in sent]
    for reply in replies:
        assert reply.fault.isprintable()
        assert len(reply.fault) < 200
        assert bool(reply.fault) or ERRORS[reply.message] is None
    good = [reply.client for reply in replies if not reply.fault]
    assert all(good.count(client) == 1 for client in good)
    assert asked is None or all(client in asked for client in filled)


def test_who_was_not_asked_and_who_came_before():
    replies = [Reply(client=client, message=None) for client in (1, 2, 1)]
    read_all(replies, lambda reply: None, frozenset([1]), OWN)
    assert [reply.fault for reply in replies] == [
        "",
        "2 was not asked in this round",
        "another reply of the same client came first",
    ]
    assert [reply.asked for reply in replies] == [True, False, True]


def test_a_bad_first_reply_does_not_let_a_second_one_in():
    replies = [Reply(client=1, message=place) for place in (0, 1)]

    def fill(reply: Reply) -> None:
        if reply.message == 0:
            raise Unusable("empty")

    read_all(replies, fill, None, OWN)
    assert [reply.fault for reply in replies] == ["empty", "another reply of the same client came first"]


def test_an_interrupt_is_nobodys_reply():
    def fill(reply: Reply) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_all([Reply(client=1, message=None)], fill, None, OWN)


@pytest.mark.parametrize(
    ("claim", "reason"), [("20", "type str"), (0, "is 0"), (2**60, "2**53"), (float("nan"), "nan")]
)
def test_a_claim_that_is_none(claim, reason):
    reply = Reply(client=1, message=None)
    with pytest.raises(Unusable) as fault:
        reply.take_claim(claim, "num-examples")
    assert "'num-examples'" in str(fault.value)
    assert reason in str(fault.value)


def test_a_claim():
    reply = Reply(client=1, message=None)
    reply.take_claim(20, "num-examples")
    assert reply.claim == 20.0
