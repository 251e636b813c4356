"""Remakes divergence_accuracy.json: python tests/reference/make_divergence_accuracy.py."""

from __future__ import annotations

import json
from pathlib import Path

from dpcore.experiments import divergence_accuracy as accuracy

SEED = 20_261
REPETITIONS = 200
CASES = (
    "n1-half", "n1-one", "n2-wider", "n5-wider", "exponential", "atom-n2", "atoms-8", "cauchy",
)  # fmt: skip
METHODS = ("ball", "score", "poczos", "paper")
FILE = Path(__file__).with_name("divergence_accuracy.json")


def main():
    config = accuracy.Config(
        repetitions=REPETITIONS, rows=1000, cases=CASES, methods=METHODS, certified=0, seed=SEED
    )
    cells = []
    for cell in accuracy.run(config).cells:
        told = {"case": cell.case, "method": cell.method, "repetitions": len(cell.values)}
        if cell.refused is None:
            assert not cell.infinite.any()
            told["mean"] = cell.mean.round(6).tolist()
            told["spread"] = cell.spread.round(6).tolist()
        cells.append(told)
    record = {"seed": SEED, "rows": 1000, "alphas": [1, 2, 4], "cells": cells}
    FILE.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
