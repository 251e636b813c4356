"""Measure the noise layers of torch: CPU time of a call, now and in another checkout.

Usage: python benches/record_torch.py --before DIR [--device cuda] [--rounds 15] [--out FILE]

DIR is another checkout of this package, with its compiled core. Both are loaded into one process
with one thread and timed by turns, because the load of a machine changes; a figure is the smallest
of the rounds. Without options for the output it writes benches/record/torch.md.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import pathlib
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS: dict[str, Callable[[Any], Any]] = {
    "LaplaceNoise": lambda package: package.LaplaceNoise(0.3),
    "LaplaceNoise, learnt": lambda package: package.LaplaceNoise(
        sensitivity=1.0, epsilon=0.5, trainable=True, cap=2.0
    ),
    "GaussianNoise": lambda package: package.GaussianNoise(0.3),
    "L2LaplaceNoise": lambda package: package.L2LaplaceNoise(0.3),
    "DPTextNoiseLayer": lambda package: package.DPTextNoiseLayer(0.3),
    "SharedNoise": lambda package: package.SharedNoise(0.3),
}
SHAPES = {(8, 16): 200, (170, 768): 4}
"""Shapes of a batch, and calls in a round."""
DTYPES = (torch.float32, torch.float64, torch.bfloat16)


def load_package(folder: pathlib.Path) -> Any:
    """Import `dpcore.torch` of one checkout, in addition to what was imported before."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "dpcore"]:
        del sys.modules[name]
    sys.path.insert(0, str(folder / "python"))
    try:
        package = importlib.import_module("dpcore.torch")
    finally:
        sys.path.pop(0)
    if not pathlib.Path(package.__file__ or "").is_relative_to(folder):
        raise SystemExit(f"{folder} must hold python/dpcore")
    return package


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


def measure(packages: list[Any], device: str, rounds: int) -> list[str]:
    """Return the lines of the table."""
    lines = []
    for name, make in LAYERS.items():
        layers = [make(package).to(device) for package in packages]
        for shape, calls in SHAPES.items():
            for dtype in DTYPES:
                x = torch.zeros(shape, dtype=dtype, device=device)
                taken = [[time_calls(layer, x, calls) for layer in layers] for _ in range(rounds)]
                before, now = map(min, zip(*taken, strict=True))
                size = " x ".join(map(str, shape))
                cells = (name, size, str(dtype)[6:], f"{before:,.0f}", f"{now:,.0f}")
                lines.append("| " + " | ".join([*cells, f"{now / before:.2f}"]) + " |")
                print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "benches/record/torch.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    packages = [load_package(options.before.resolve()), load_package(ROOT)]
    load = os.getloadavg()[0]
    lines = measure(packages, options.device, options.rounds)
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
`python benches/record_torch.py --before DIR`, where DIR is a checkout of the version to compare
with, here the last one whose layers `torch.compile` refused.

{gpu}

Microseconds of CPU time of one call in eager mode, the smallest of {options.rounds} rounds.

| layer | batch | dtype | before | now | ratio |
| --- | --- | --- | ---: | ---: | ---: |
"""
        + "\n".join(lines)
        + "\n"
    )


if __name__ == "__main__":
    main()
