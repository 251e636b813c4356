"""Remakes clopper_pearson.csv: exact binomial limits to 20 digits (needs mpmath and scipy)."""

from __future__ import annotations

from pathlib import Path

import mpmath
from scipy.stats import beta

CASES = [(1, 2), (1, 10), (9, 10), (3, 7), (1, 1000), (500, 1000), (999, 1000), (33_770, 100_000)]
CASES += [(1, 10**8), (2, 10**8), (12_345_678, 10**8), (10**8 - 1, 10**8), (7, 10**12)]
CASES += [(10**10 - 3, 10**10)]
ALPHAS = ["0.025", "0.5", "0.00005", "0.95", "1e-12"]


def at_least(k, n, p):
    """P(Binomial(n, p) >= k), from its first term on."""
    term = mpmath.exp(
        mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
        + k * mpmath.log(p) + (n - k) * mpmath.log1p(-p)
    )  # fmt: skip
    total, i, odds = term, k, p / (1 - p)
    while i < n and (term > total * mpmath.mpf(10) ** -30 or i < n * p):
        term *= mpmath.mpf(n - i) / (i + 1) * odds
        total += term
        i += 1
    return total


def low(k, n, alpha):
    """The p at which that probability is alpha."""
    guess = mpmath.mpf(float(beta.ppf(float(alpha), k, n - k + 1)))

    def miss(v):
        return mpmath.log(at_least(k, n, 1 / (1 + mpmath.exp(-v)))) - mpmath.log(alpha)

    start = mpmath.log(guess / (1 - guess))
    step = mpmath.mpf("1e-9") * (1 + abs(start))
    v = mpmath.findroot(miss, (start, start + step), solver="secant", tol=1e-50)
    p = 1 / (1 + mpmath.exp(-v))
    if n <= 1000:
        assert abs(mpmath.betainc(k, n - k + 1, 0, p, regularized=True) / alpha - 1) < 1e-25
    return p


def main():
    """Write the file."""
    lines = ["k,n,alpha,low,high"]
    for k, n in CASES:
        for text in ALPHAS:
            if n >= 10**8 and min(k, n - k) > 10 and text != "0.025":
                continue
            alpha = mpmath.mpf(float(text))
            limits = low(k, n, alpha), 1 - low(n - k, n, alpha)
            lines.append(",".join([str(k), str(n), text, *(mpmath.nstr(p, 20) for p in limits)]))
    Path(__file__).with_name("clopper_pearson.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    with mpmath.workdps(40):
        main()
