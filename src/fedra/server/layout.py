"""How replies are laid out, and which layout counts: averages need one, and no minority may choose it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fedra.server.faults import Unusable, short

if TYPE_CHECKING:
    from fedra.server.replies import Reply

Kinds = tuple[tuple[str, str], ...]

_MOST_SETTINGS = 10_000


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The names of a reply's array record and metric record, its metrics, and its config records, with their kinds.

    A kind is what must be alike for values to be used together: one number, a list of so many, text.
    """

    arrays: str = ""
    metrics: str = "metrics"
    values: Kinds = ()
    configs: tuple[tuple[str, Kinds], ...] = ()


def kinds_of(pairs: Iterable[tuple[str, str]]) -> Kinds:
    """Return names with their kinds in an order that does not depend on who sent them."""
    return tuple(sorted(pairs))


def config_kinds(config: Mapping[str, Any]) -> Kinds:
    """Return what a config record holds, by type."""
    if len(config) > _MOST_SETTINGS:
        raise Unusable(f"a config record holds {len(config)} values, more than {_MOST_SETTINGS}")
    return kinds_of((key, type(value).__name__) for key, value in config.items())


def settle_layout(replies: Sequence[Reply], own: Layout) -> None:
    """Refuse replies laid out unlike more than half of the usable ones; where no layout has so many, refuse nobody.

    Then replies are handed on under the server's `own` names, and of their metrics what all that are kept share. A
    plurality is not enough: honest clients may come in several layouts, and the largest of them may be the attackers'.
    """
    usable = [reply for reply in replies if not reply.fault]
    if not usable:
        return
    layout, count = Counter(reply.layout for reply in usable).most_common(1)[0]
    for reply in usable:
        if 2 * count <= len(usable):
            reply.handed_as = (own.arrays, own.metrics)
        elif reply.layout == layout:
            reply.handed_as = (layout.arrays, layout.metrics)
        else:
            reply.fault = _fault(reply.layout, layout)


def shared_metrics(replies: Sequence[Reply]) -> list[str]:
    """Return the names of the metrics that all these replies have, of one kind, in order."""
    forms = [set(reply.layout.values) for reply in replies]
    return sorted(key for key, _ in set.intersection(*forms)) if forms else []


def shared_values(replies: Sequence[Reply]) -> list[dict[str, Any]]:
    """Return of each reply's metrics those that all these replies have, of one kind."""
    names = shared_metrics(replies)
    return [{name: reply.metrics[name] for name in names} for reply in replies]


def shared_configs(replies: Sequence[Reply]) -> list[str]:
    """Return the names of the config records that all these replies have, of one form, in order."""
    forms = [set(reply.layout.configs) for reply in replies]
    return sorted(name for name, _ in set.intersection(*forms)) if forms else []


def _fault(found: Layout, most: Layout) -> str:
    if found.arrays != most.arrays:
        return f"array record is named {short(found.arrays)}, most clients' {short(most.arrays)}"
    if found.metrics != most.metrics:
        return f"metric record is named {short(found.metrics)}, most clients' {short(most.metrics)}"
    return (
        _difference("metric", dict(found.values), dict(most.values))
        or _difference("config record", dict(found.configs), dict(most.configs))
        or "laid out unlike most clients' replies"
    )


def _difference(what: str, found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    for key, kind in expected.items():
        if key not in found:
            return f"lacks {what} {short(key)}, which most clients sent"
        if found[key] != kind and isinstance(kind, str):
            return f"{what} {short(key)} is {found[key]}, most clients' {kind}"
        if found[key] != kind:
            return f"{what} {short(key)} holds other values than most clients'"
    for key in found:
        if key not in expected:
            return f"has {what} {short(key)}, which most clients did not send"
    return ""
