"""Draw the pictures of docs/how-fedra-works.md from one simulated round.

python docs/_site/pictures.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import fedra

IMAGES = Path(__file__).parents[1] / "images"
GREEN, RED, GREY = "#2e7d5b", "#c0392b", "#777777"


def distances() -> plt.Figure:
    """Honest clients along 1/sqrt(q), two liars far above."""
    rng = np.random.default_rng(3)
    quantities = np.maximum(1, rng.lognormal(3, 1.6, 48)).round()
    updates = 0.2 + rng.normal(0, 1, (48, 2000)) / np.sqrt(quantities)[:, None]
    liars = -0.2 + rng.normal(0, 1, (2, 2000))
    claims = np.append(quantities, [3000, 8000])
    rows = np.vstack([updates, liars])
    verdict = fedra.FedRA(malicious_ratio=0.1)(rows, claims)
    length = np.linalg.norm(rows - verdict.update, axis=1) / np.sqrt(rows.shape[1])
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    line = np.geomspace(1, claims.max(), 50)
    axes.plot(line, 1 / np.sqrt(line), color=GREY, linestyle="--", label="what a claim promises: s / √q")
    kept = verdict.kept
    axes.scatter(claims[kept], length[kept], color=GREEN, marker="o", s=22, label="kept")
    axes.scatter(claims[~kept], length[~kept], color=RED, marker="^", s=48, label="left out")
    axes.set(xscale="log", yscale="log", xlabel="claimed samples", ylabel="distance from the result")
    axes.legend(frameon=False)
    return figure


def weight() -> plt.Figure:
    """What a client weighs by what it claims, where its update proves 100 samples."""
    proved = 100.0
    claims = np.geomspace(10, 10_000, 2000)
    weights = np.where(claims > 40 * proved, 0, claims * np.minimum(1, 4 * proved / claims) ** 2)
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    axes.plot(claims, claims, color=GREY, linestyle="--", label="FedAvg: what it claims")
    axes.plot(claims, weights, color=GREEN, linewidth=2.2, label="FedRA")
    for times in (4, 40):
        axes.axvline(times * proved, color=RED, linewidth=0.8, linestyle=":")
        axes.annotate(f"{times} times", (times * proved, 500), xytext=(4, 0), textcoords="offset points", color=RED)
    axes.set(xscale="log", ylim=(0, 560), xlabel="claimed samples, where the update proves 100", ylabel="weight")
    axes.legend(frameon=False, loc="upper left")
    return figure


def main() -> None:
    """Write both."""
    matplotlib.rcParams.update({"svg.hashsalt": "fedra", "svg.fonttype": "path", "font.size": 10})
    for name, figure in (("how-distance", distances()), ("how-weight", weight())):
        figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
