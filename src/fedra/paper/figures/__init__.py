"""The paper's figures from our results, by name; the third is a diagram of the method."""

from __future__ import annotations

from functools import partial

from fedra.paper.figures.accuracy import against_quantity, without_attack
from fedra.paper.figures.estimation import estimation
from fedra.paper.figures.scores import score_distributions
from fedra.report.figures import Figure

FIGURES: dict[str, Figure] = {
    "figure1": without_attack,
    "figure2": against_quantity,
    "figure4": partial(estimation, 4),
    "figure5": partial(estimation, 5),
    "figure6": score_distributions,
}
