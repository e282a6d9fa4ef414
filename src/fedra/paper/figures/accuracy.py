"""Figures 1 and 2: accuracy without attack, and against the claimed quantity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fedra.paper.published import read_paper
from fedra.paper.tables import ordered_rules, paper_datasets, paper_name, paper_outcomes, stands_for, table_labels
from fedra.report.appearance import HONEST, MALICIOUS, NEUTRAL, RuleStyle, rule_style, rule_styles
from fedra.report.figures.drawing import (
    Drawing,
    label,
    legend_below,
    line_looks,
    own_first,
    panels,
    percent_axis,
    styled,
)
from fedra.report.model import Table
from fedra.report.model.outcomes import Outcome, ReportData, entry_of, grouped, in_order
from fedra.rules import Family

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAMILY_COLOURS = {str(Family.IGNORANT): NEUTRAL, str(Family.AWARE): HONEST, str(Family.ROBUST): MALICIOUS}
_OTHER_FAMILY = "#009e73"
SPREAD_NOTE = " Thin bars are one standard deviation over seeds to either side of the mean."


def without_attack(data: ReportData, _tables: Sequence[Table] = ()) -> Iterator[Drawing]:
    """Draw accuracy without attack by rule, data set and partition."""
    clean = [outcome for outcome in paper_outcomes(data) if not outcome.attacked and outcome.accuracy is not None]
    dynamic = [outcome for outcome in clean if outcome.setting == "dynamic"] or clean
    if not dynamic:
        return
    datasets = paper_datasets(dynamic)
    partitions = in_order((outcome.partition for outcome in dynamic), ["iid", "non-iid"])
    most = max(len(ordered_rules(group)) for group in grouped(dynamic, lambda c: (c.dataset, c.partition)).values())
    with styled():
        figure, grid = panels(len(partitions), len(datasets), width=4.4, height=0.7 + 0.27 * most)
        families: dict[str, str] = {}
        for axes_row, partition in zip(grid, partitions, strict=True):
            for axes, dataset in zip(axes_row, datasets, strict=True):
                own = [outcome for outcome in dynamic if (outcome.dataset, outcome.partition) == (dataset, partition)]
                if not own:
                    axes.set_axis_off()
                    continue
                families |= _dots(axes, own)
                axes.set_title(label(f"{paper_name(dataset)}, {paper_name(partition)}"))
                axes.set_xlabel("accuracy (%)")
        for family, colour in families.items():
            grid[0][0].plot([], [], "o", color=colour, label=family)
        legend_below(figure, grid[0][0], columns=len(families))
    caption = f"Figure 1: accuracy without attack, by family of rules.{spread_note(dynamic)}"
    yield Drawing(key="figure1", caption=caption, figure=figure)


def _dots(axes: Axes, outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Draw a dot for each rule, with its spread over seeds; return the families' colours."""
    rules = ordered_rules(outcomes)[::-1]
    families = {}
    for place, rule in enumerate(rules):
        own = [outcome for outcome in outcomes if outcome.rule == rule]
        entry = entry_of(own)
        if entry is None or entry.mean is None:
            continue
        colour = _FAMILY_COLOURS.get(own[0].family, _OTHER_FAMILY)
        families[own[0].family] = colour
        axes.errorbar(entry.mean, place, xerr=entry.std, fmt="o", color=colour, capsize=2)
        axes.annotate(
            f"{entry.mean:.1f}", (entry.mean, place), (0, 5), textcoords="offset points", ha="center", fontsize=7.5
        )
    axes.set_yticks(range(len(rules)), [label(paper_name(rule)) for rule in rules])
    axes.set_ylim(-0.6, len(rules) - 0.2)
    axes.margins(x=0.12)
    return dict(reversed(families.items()))


def against_quantity(data: ReportData, _tables: Sequence[Table] = ()) -> Iterator[Drawing]:
    """Draw accuracy under LIE against alpha_q, ours and what the paper has."""
    definition = read_paper().figure(2).grid
    wanted = [
        outcome
        for outcome in paper_outcomes(data)
        if outcome.setting in definition["settings"]
        and outcome.attack in definition["attacks"]
        # Those that the paper does not have are added ones.
        and (outcome.rule in definition["rules"] or outcome.rule not in table_labels())
        and stands_for(outcome.dataset) in definition["datasets"]
        and outcome.alpha_q is not None
        and outcome.accuracy is not None
    ]
    groups = grouped(wanted, lambda outcome: (outcome.dataset, outcome.partition))
    if not groups:
        return
    alphas = sorted({outcome.alpha_q for outcome in wanted if outcome.alpha_q is not None})
    rules = in_order((outcome.rule for outcome in wanted), definition["rules"])
    own_rules = {outcome.rule for outcome in wanted if outcome.own}
    rules = own_first(rules, own_rules.__contains__)
    looks = dict(zip(rules, rule_styles((rule, rule in own_rules) for rule in rules), strict=True))
    with styled():
        figure, grid = panels(1, len(groups), width=4.2, height=3.4, share_y=True)
        published = False
        for axes, ((dataset, partition), own) in zip(grid[0], groups.items(), strict=True):
            for rule in rules:
                members = [outcome for outcome in own if outcome.rule == rule]
                _quantity_line(axes, looks[rule], members, alphas)
                part = (dataset, partition, own[0].setting)
                published |= _published_line(axes, part, rule, own[0].attack, alphas)
            axes.set_xticks(range(len(alphas)), [f"{alpha:g}" for alpha in alphas])
            axes.margins(x=0.08)
            axes.set_xlabel(r"$\alpha_q$")
            axes.set_title(label(f"{paper_name(dataset)}, {paper_name(partition)}, {paper_name(own[0].setting)}"))
        percent_axis(grid[0][0])
        # Rules may be missing from the first panel, the legend has them all.
        for rule in rules:
            grid[0][0].plot([], [], label=label(paper_name(rule)), **_line(looks[rule]))
        if published:
            grid[0][0].plot([], [], "--", color=NEUTRAL, linewidth=1, label="published")
        legend_below(figure, grid[0][0], columns=3)
    caption = f"Figure 2: accuracy under LIE against the claimed quantity.{spread_note(wanted)}"
    yield Drawing(key="figure2", caption=caption, figure=figure)


def spread_note(outcomes: Iterable[Outcome]) -> str:
    """Return what the thin bars are; empty where there is one seed, and so none of them."""
    return SPREAD_NOTE if len({outcome.seed for outcome in outcomes}) > 1 else ""


def _quantity_line(axes: Axes, style: RuleStyle, outcomes: Sequence[Outcome], alphas: Sequence[float]) -> None:
    entries = [entry_of(outcome for outcome in outcomes if outcome.alpha_q == alpha) for alpha in alphas]
    points = [(place, e.mean, e.std or 0.0) for place, e in enumerate(entries) if e and e.mean is not None]
    if points:
        places, means, spreads = zip(*points, strict=True)
        axes.errorbar(places, means, yerr=spreads if any(spreads) else None, capsize=2, elinewidth=1, **_line(style))


def _published_line(axes: Axes, part: tuple[str, str, str], rule: str, attack: str, alphas: Sequence[float]) -> bool:
    """Draw what the paper has for a rule; return whether there is anything."""
    lines = {
        line.alpha_q: line.accuracy
        for line in read_paper().accuracies
        if (line.dataset, line.partition, line.setting) == part and (line.rule, line.attack) == (rule, attack)
    }
    points = [(place, lines[alpha]) for place, alpha in enumerate(alphas) if alpha in lines]
    if points:
        axes.plot(*zip(*points, strict=True), "--", color=rule_style(rule).colour, linewidth=1, alpha=0.8)
    return bool(points)


def _line(style: RuleStyle) -> dict[str, Any]:
    return {**line_looks(style), "markersize": 7 if style.strong else 5}
