"""Remakes ln.csv: logarithms of j/2^52 to about 107 bits, as two doubles (needs mpmath)."""

import random
from pathlib import Path

import mpmath


def main():
    """Write the file."""
    draw, top = random.Random(1), 2**52
    points = {1, 2, 3, top, top - 1, top - 2, top - 3, top // 2 - 1, top // 2 + 1}
    points |= {draw.randrange(2**k, 2 ** (k + 1)) for k in range(52) for _ in range(3)}
    points |= {top - draw.randrange(2**k, 2 ** (k + 1)) for k in range(50) for _ in range(2)}
    lines = ["j,high,low"]
    with mpmath.workprec(400):
        for j in sorted(points):
            value = mpmath.log(mpmath.mpf(j) / top)
            high = float(value)
            lines.append(f"{j},{high!r},{float(value - high)!r}")
    Path(__file__).with_name("ln.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
