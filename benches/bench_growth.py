"""Growth of the ball's time with the number of rows, to 50,000 a side, without error bars.

Run as a script, it writes the picture and the table: python benches/bench_growth.py. An operation
is one row of either set.
"""

import pathlib
import time

import numpy as np
import pytest

from dpcore.divergence import renyi

ROWS = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000)
DIMS = (1, 2, 8, 384)
SHIFT = 0.5


def sets(rows, dim):
    rng = np.random.default_rng(dim)
    y0, y1 = rng.normal(size=(2, rows, dim)).astype(np.float32)
    y1[:, 0] += SHIFT
    return y0, y1


def ball(y0, y1):
    return renyi(y0, y1, alphas=[2.0], method="ball", error=None, checks=False, rng=1)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("rows", ROWS[:4])
def test_growth(race, tiny, rows, dim):
    rows = rows // 10 if tiny else rows
    y0, y1 = sets(rows, dim)
    estimate = race(f"ball, {dim} coordinates", lambda: ball(y0, y1), 2 * rows, 3)
    if dim <= 2:
        # Truth .125 at order one; the spread of an estimate is about one over the square root.
        assert np.abs(estimate.kl - SHIFT**2 / 2).max() < 0.05 + 5.0 / np.sqrt(rows)
    assert np.isfinite(estimate.kl).all()


def measured(rows, dim):
    """Seconds of the faster of two runs."""
    y0, y1 = sets(rows, dim)
    seconds = []
    for _ in range(2):
        begun = time.perf_counter()
        ball(y0, y1)
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def main():
    """Time every size, draw the times, and print the exponents of the last tenfold growth."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.subplots()
    folder = pathlib.Path(__file__).parent / "record"
    lines = ["| coordinates | " + " | ".join(f"{rows:,}" for rows in ROWS) + " | exponent |"]
    lines.append("| ---: " * (len(ROWS) + 2) + "|")
    for dim in DIMS:
        times = [measured(rows, dim) for rows in ROWS]
        exponent = np.log(times[-1] / times[2]) / np.log(ROWS[-1] / ROWS[2])
        axes.loglog(ROWS, times, "o-", label=f"d = {dim}: rows to the {exponent:.2f}")
        shown = " | ".join(f"{seconds:.3g}" for seconds in times)
        lines.append(f"| {dim} | {shown} | {exponent:.2f} |")
    axes.set_xlabel("rows of each set")
    axes.set_ylabel("seconds, both directions")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "divergence-growth.svg", metadata={"Date": None})
    figure.savefig(pathlib.Path("divergence-growth.png"), dpi=150)
    head = (
        "Seconds of the ball by rows of each set; exponent from 5,000 to 50,000. Remade by\n"
        "`python benches/bench_growth.py`."
    )
    table = "\n".join([head, "", *lines])
    (folder / "divergence-growth.md").write_text(table + "\n")
    print(table)


if __name__ == "__main__":
    main()
