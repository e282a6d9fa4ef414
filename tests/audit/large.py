"""A trail of any size, quickly: every tenth client lies about its quantity and is mostly left out."""

from __future__ import annotations

import json
import random
from pathlib import Path

HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def write_trail(path: Path, *, rounds: int, clients: int, sampled: int | None = None, seed: int = 0) -> Path:
    """Write the trail; rounds 41, 42 and 97 are missing, every 50th is skipped, and one client has a hostile name."""
    rng = random.Random(seed)
    sizes = [max(1, int(rng.lognormvariate(3, 1.5))) for _ in range(clients)]
    with path.open("w", encoding="utf-8") as file:
        for number in range(1, rounds + 1):
            if number not in (41, 42, 97):
                asked = range(clients) if sampled is None else sorted(rng.sample(range(clients), sampled))
                for line in _round(number, [(client, sizes[client]) for client in asked], rng):
                    file.write(json.dumps(line) + "\n")
    return path


def _round(number, asked, rng):
    place = {"run": "4711", "round": number, "phase": "train"}
    note = "too few replies: 3, and the rule needs more than 8" if number % 50 == 0 else ""
    cut, kept = rng.uniform(2, 3), 0
    for client, size in asked:
        chance, liar = rng.random(), client % 10 == 3
        usable = chance >= 0.002
        dropped = usable and ((liar and chance < 0.9) or chance < 0.02)
        score = cut * (rng.uniform(1.1, 3) if dropped else rng.uniform(0.2, 0.99))
        part = usable and not dropped and not note
        kept += part
        why = f"score {score:.4g} is past the cut {cut:.4g}" if usable else "3 values of the update are not finite"
        yield {
            "kind": "client",
            **place,
            "client": HOSTILE if client == 5 else str(10**15 + 7919 * client),
            "claimed_quantity": float(size * (30 if liar else 1)),
            "implied_quantity": size * rng.lognormvariate(0, 0.3) if usable else None,
            "score": score if usable else None,
            "cut": cut,
            "kept": part,
            "weight": rng.uniform(0.3, 3) / len(asked) if part else 0.0,
            "usable": usable,
            "reason": "" if part else why,
        }
    warnings = ["node 1000000000023757 was left out in 5 rounds running"] if number % 37 == 0 else []
    yield {
        "kind": "round",
        **place,
        "time": 1.7e9 + 60 * number,
        "rule": "fedra",
        "num_malicious": len(asked) // 10,
        "kept": kept,
        "rejected": len(asked) - kept,
        "note": note,
        "warnings": warnings,
    }
