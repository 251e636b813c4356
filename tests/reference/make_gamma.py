"""Remakes gamma.csv: log_gamma_ratio to its edges; where b = 0, digamma (needs mpmath)."""

import math
import random
from pathlib import Path

import mpmath

TOP = 2.0**53


def ratio(x, b):
    """ln Gamma(x + b) - ln Gamma(x), to 50 digits beside what cancels."""
    with mpmath.workdps(750):
        x, b = mpmath.mpf(x), mpmath.mpf(b)
        return mpmath.loggamma(x + b) - mpmath.loggamma(x)


def main():
    """Write the file."""
    draw = random.Random(1)
    huge = [TOP, TOP + 2, TOP - 1, TOP - 3, 2.0**52 + 1, 2.0**54, 2.0**56, 2.0**40 - 2.0**-12, 1e12]
    points = [(x, left - x) for x in huge for left in (1.0, 2.0, 3.0, 8.0, 9.0, 24.0, 0.375)]
    points += [(1e300, -9e299), (1e300, 1e-10), (1.7e308, -1e-300), (1e200, 1e200), (1e17, 0.5)]
    points += [(5e-324, 0.3), (1e-310, 0.5), (1e-310, -5e-311), (1e-310, 1e-312), (5e-324, 300.5)]
    points += [(1e-300, 1e-300), (1e-300, 1e-12), (1e-9, -9e-10), (1e-5, 1e-20), (1e-12, 1e15)]
    points += [
        (10.0 ** draw.uniform(-300, 300), 10.0 ** draw.uniform(-300, 300)) for _ in range(40)
    ]
    for _ in range(80):
        x = 10.0 ** draw.uniform(-8, 18)
        points.append(
            (x, x * draw.choice([draw.uniform(-1, 1), -1 + 10.0 ** draw.uniform(-15, -1)]))
        )
        points.append((draw.uniform(0.01, 15), draw.uniform(-2, 40)))
    lines = ["x,b,value"]
    for x, b in dict.fromkeys(points):
        if 0.0 < x + b < math.inf and b != 0.0:
            lines.append(f"{x!r},{b!r},{float(ratio(x, b))!r}")
    near = math.nextafter(1.4616321449683622, 2)
    for x in [5e-324, 1e-310, 1e-17, 0.5, 1.0, near, 1.7116, 9.99, 10.0, 1e15, TOP, 1e300, 1.7e308]:
        lines.append(f"{x!r},0.0,{float(mpmath.digamma(mpmath.mpf(x)))!r}")
    Path(__file__).with_name("gamma.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    with mpmath.workdps(50):
        main()
