from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedra.server.faults import Unusable
from fedra.server.layout import (
    Layout,
    config_kinds,
    kinds_of,
    settle_layout,
    shared_configs,
    shared_metrics,
    shared_values,
)
from fedra.server.replies import Reply

OWN = Layout(arrays="own", metrics="metrics")
kinds = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["one number", "a list of 2"])).map(
    lambda found: kinds_of(found.items())
)
layouts = st.builds(
    Layout,
    arrays=st.sampled_from(["arrays", "weights"]),
    metrics=st.sampled_from(["metrics", "numbers"]),
    values=kinds,
    configs=st.sampled_from([(), (("notes", (("by", "str"),)),)]),
)


def replies_of(found: list[Layout]) -> list[Reply]:
    return [Reply(client=place, message=None, layout=layout) for place, layout in enumerate(found)]


@given(st.lists(layouts, min_size=1, max_size=9))
def test_only_what_more_than_half_have_shuts_others_out(found):
    replies = replies_of(found)
    settle_layout(replies, OWN)
    layout, count = Counter(found).most_common(1)[0]
    for reply in replies:
        if 2 * count <= len(found):
            assert not reply.fault
            assert reply.handed_as == ("own", "metrics")
        elif reply.layout == layout:
            assert not reply.fault
            assert reply.handed_as == (layout.arrays, layout.metrics)
        else:
            assert reply.fault


def test_replies_with_a_fault_have_no_vote():
    replies = replies_of([Layout(arrays="a")] * 2 + [Layout(arrays="b")] * 3)
    for reply in replies[2:]:
        reply.fault = "not asked"
    settle_layout(replies, OWN)
    assert [bool(reply.fault) for reply in replies] == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (Layout(arrays="w"), "array record is named 'w', most clients' 'arrays'"),
        (Layout(arrays="arrays", metrics="m"), "metric record is named 'm', most clients' 'metrics'"),
        (Layout(arrays="arrays"), "lacks metric 'loss', which most clients sent"),
        (Layout(arrays="arrays", values=(("evil", "one number"), ("loss", "one number"))), "has metric 'evil'"),
        (Layout(arrays="arrays", values=(("loss", "a list of 2"),)), "metric 'loss' is a list of 2, most clients' one"),
        (
            Layout(arrays="arrays", values=(("loss", "one number"),), configs=(("notes", ()),)),
            "has config record 'notes', which most clients did not send",
        ),
    ],
)
def test_the_reason_says_what_is_different(odd, reason):
    usual = Layout(arrays="arrays", values=(("loss", "one number"),))
    replies = replies_of([usual, usual, odd])
    settle_layout(replies, OWN)
    assert reason in replies[2].fault


@given(st.lists(layouts, max_size=5))
def test_what_all_share(found):
    replies = replies_of(found)
    for reply in replies:
        reply.metrics = {name: (reply.client, name) for name, _ in reply.layout.values}
    names = shared_metrics(replies)
    assert names == sorted(set(names))
    for reply, values in zip(replies, shared_values(replies), strict=True):
        assert values == {name: (reply.client, name) for name in names}
    everywhere = [set(layout.values) for layout in found]
    assert all(any(name == key for key, _ in set.intersection(*everywhere)) for name in names)
    assert shared_configs(replies) == (["notes"] if found and all(layout.configs for layout in found) else [])


def test_config_records_are_counted_before_they_are_read():
    assert config_kinds({"b": 1, "a": "x"}) == (("a", "str"), ("b", "int"))
    with pytest.raises(Unusable, match="10001 values, more than 10000"):
        config_kinds(dict.fromkeys(map(str, range(10_001)), 1))
