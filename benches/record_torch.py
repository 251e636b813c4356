"""Measure the noise layers of torch: CPU time of a call.

Usage: python benches/record_torch.py [--device cuda] [--rounds 15] [--out FILE]

One thread calls the layers; a figure is the smallest of the rounds. Without options for the output
it writes benches/record/torch.md.
"""

from __future__ import annotations

import argparse
import datetime
import os
import pathlib
import platform
import time
from collections.abc import Callable
from typing import Any

import torch

from dpcore.torch import (
    DPTextNoiseLayer,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    SharedNoise,
)

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS: dict[str, Callable[[], Any]] = {
    "LaplaceNoise": lambda: LaplaceNoise(0.3),
    "LaplaceNoise, learnt": lambda: LaplaceNoise(
        sensitivity=1.0, epsilon=0.5, trainable=True, cap=2.0
    ),
    "GaussianNoise": lambda: GaussianNoise(0.3),
    "L2LaplaceNoise": lambda: L2LaplaceNoise(0.3),
    "DPTextNoiseLayer": lambda: DPTextNoiseLayer(0.3),
    "SharedNoise": lambda: SharedNoise(0.3),
}
SHAPES = {(8, 16): 200, (170, 768): 4}
"""Shapes of a batch, and calls in a round."""
DTYPES = (torch.float32, torch.float64, torch.bfloat16)


def time_calls(layer: Any, x: Any, calls: int) -> float:
    """Return the microseconds of one call: CPU time, or on a GPU the time until it is done."""
    clock = time.process_time if x.device.type == "cpu" else time.perf_counter
    begun = clock()
    with torch.no_grad():
        for _ in range(calls):
            layer(x)
    if x.device.type == "cuda":
        torch.cuda.synchronize()
    return 1e6 * (clock() - begun) / calls


def measure_layers(device: str, rounds: int) -> list[str]:
    """Return the lines of the table."""
    lines = []
    for name, make in LAYERS.items():
        layer = make().to(device)
        for shape, calls in SHAPES.items():
            for dtype in DTYPES:
                x = torch.zeros(shape, dtype=dtype, device=device)
                least = min(time_calls(layer, x, calls) for _ in range(rounds))
                size = " x ".join(map(str, shape))
                lines.append(f"| {name} | {size} | {str(dtype)[6:]} | {least:,.0f} |")
                print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "benches/record/torch.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    lines = measure_layers(options.device, options.rounds)
    gpu = (
        "No GPU was had: speeds on one are not measured, and tests with the marker `gpu` were\n"
        "skipped. `--device cuda` measures them."
    )
    if torch.cuda.is_available():
        gpu = f"GPU: {torch.cuda.get_device_name()}."
    options.out.write_text(
        f"""# Noise layers of torch: the time of a call

{datetime.date.today()}, torch {torch.__version__}, {platform.machine()}, {os.cpu_count()} cores,
one thread, device {options.device}; load {load:.1f} before it. Remade by
`python benches/record_torch.py`.

{gpu}

Microseconds of CPU time of one call in eager mode, the smallest of {options.rounds} rounds.

| layer | batch | dtype | us |
| --- | --- | --- | ---: |
"""
        + "\n".join(lines)
        + "\n"
    )


if __name__ == "__main__":
    main()
