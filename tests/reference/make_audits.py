"""Remakes audits.csv, which the Rust tests read: python tests/reference/make_audits.py."""

from __future__ import annotations

from pathlib import Path

import dpcore
from dpcore.attacks import MajorityVote

FILE = Path(__file__).with_name("audits.csv")
HEAD = "mechanism,scale,dim,x_prime,trials,seed,delta,k,k_prime,vote,direction,pilot,epsilon_lower"
# Mechanism, scale, dimension, entries of x' (those of x are 0), trials, seed, delta.
CASES = [
    ("Laplace", 2.0, 3, 1.0, 100_000, 7, 0.0),
    ("Laplace", 0.5, 3, 1.0, 100_000, 7, 0.0),
    ("Laplace", 3.0, 3, 1.0, 1_000_000, 7, 0.0),  # examples/audit.rs
    ("Laplace", 128.0, 128, -1.0, 70_000, 2**63 - 1, 0.0),
    ("Laplace", 1.0, 1, 1.0, 99, 1, 0.0),
    ("Gaussian", 1.5, 2, 1.0, 50_000, 3, 1e-3),
    ("Exponential", 1.0, 1, 1.0, 200_000, 4, 0.0),
    ("RandomBits", 0.0, 5, 1.0, 10_000, 5, 0.0),
    ("Identity", 0.0, 4, 1.0, 10_000, 6, 0.0),
]


def audited(case):
    """The row of a case."""
    name, scale, dim, x_prime, trials, seed, delta = case
    mechanism = getattr(dpcore, name)(*([scale] if scale else []))
    pair = dpcore.Pair([0.0] * dim, [x_prime] * dim)
    found = dpcore.audit(
        mechanism, pair, trials=trials, attack=MajorityVote(), rng=seed, delta=delta
    )
    counts = found.counts.k, found.counts.k_prime
    chosen = found.event.vote, found.direction, found.pilot, found.epsilon_lower
    return ",".join(map(str, (*case, *counts, *chosen)))


def main():
    """Write the file."""
    FILE.write_text("\n".join([HEAD, *map(audited, CASES)]) + "\n")


if __name__ == "__main__":
    main()
