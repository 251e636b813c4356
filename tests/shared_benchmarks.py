"""The benchmark as it was printed: names, shapes and suprema."""

from __future__ import annotations

import math

from dpcore.experiments.dp_sniper_table.mechanisms import BENCHMARKS

NAMES = tuple(BENCHMARKS)
INF = math.inf

# Of the printed table: dimension and element type of an output, and the supremum.
PRINTED = {
    "Laplace": ((), "f", 0.1, "0.1"),
    "TruncatedGeometric": ((), "i", 0.11778, "0.11778"),
    "NoisyHist1": ((5,), "f", 0.1, "0.1"),
    "NoisyHist2": ((5,), "f", 10, "10"),
    "ReportNoisyMax1": ((), "i", 0.0946, "0.0946"),
    "ReportNoisyMax2": ((), "i", 0.1, "0.1000"),
    "ReportNoisyMax3": ((), "f", 0.25, "0.2500"),
    "ReportNoisyMax4": ((), "f", INF, "inf"),
    "SVT1": ((10,), "i", 0.0885, "0.0885"),
    "SVT2": ((10,), "i", 0.0882, "0.0882"),
    "SVT3": ((10,), "f", 0.5, "0.5000"),
    "SVT4": ((10,), "i", 0.1725, "0.1725"),
    "SVT5": ((10,), "i", INF, "inf"),
    "SVT6": ((10,), "i", 0.42, "0.4200"),
    "RAPPOR": ((20,), "u", 0.30006, "0.30006"),
    "OneTimeRAPPOR": ((20,), "u", 0.6005, "0.6005"),
    "LaplaceParallel": ((20,), "f", 0.1, "0.1"),
    "SVT34Parallel": ((20,), "f", 0.4874, "0.4874"),
    "PrefixSum": ((10,), "f", 1.0, "1.0"),
    "NumericalSVT": ((10,), "f", 0.0805, "0.0805"),
}
