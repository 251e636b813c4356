"""Noise of dpcore's native mechanisms and noise layers in a traced run.

Noise that is added to a value is drawn as traced numbers, which store the noise that they contain.
Any other noise is one step, whose privacy loss is known by a formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..mechanisms import native
from ..packages import attribute_if_imported
from ..sampling import sources
from .draws import Patch, draw_named
from .forms import is_noisy_value
from .replay import TracedRun, get_active_run

_LAYERS: Final = (
    ("dpcore.torch.layers", "LaplaceNoise", "_noise", "laplace"),
    ("dpcore.torch.layers", "GaussianNoise", "_noise", "normal"),
    ("dpcore.torch.layers", "L2LaplaceNoise", "forward", ""),
)
"""Noise layers: module, class, method, and distribution of the noise. A layer is patched only if
its module is loaded."""


def _make_traced_sampler(original: Any) -> Any:
    def fill_outputs(mech: Any, x: Any, size: int, *arguments: Any, **named: Any) -> Any:
        run = get_active_run()
        if run is None:
            return original(mech, x, size, *arguments, **named)
        return draw_outputs(
            run, mech, x, size, lambda seed: original(mech, x, size, seed), arguments, named
        )

    return fill_outputs


def draw_outputs(
    run: TracedRun,
    mech: Any,
    x: Any,
    size: int,
    sample: Callable[[Any], Any],
    arguments: Any,
    named: Any,
) -> Any:
    """Draw the outputs of a mechanism of dpcore inside a run of `dpcore.trace`.

    If the noise can be traced, the outputs store which noise they contain.

    Args:
        run: record of the run.
        mech: the mechanism.
        x: input of the mechanism.
        size: number of outputs.
        sample: function of a seed that draws outputs without a trace.
        arguments: other positional arguments of the call that draws the outputs: a generator or
            seed, and the array to fill.
        named: other keyword arguments of this call.
    """
    x = x if is_noisy_value(x) else np.asarray(x, float)
    steps = mech.steps(x.size)
    rng = arguments[0] if arguments else named.get("rng")
    is_seed = rng is not None and not isinstance(rng, np.random.Generator)
    if is_seed and int(rng) not in run.issued_seeds:
        # Draws from a fixed seed are not noise.
        return sample(rng)
    law = native.facts_about_noise(steps.noise).traced
    out = named.get("out", arguments[1] if len(arguments) > 1 else None)
    if not law or steps.clip is not None or out is not None:
        outputs = _record_native_draw_as_step(run, steps, x, size, sample)
        if out is None:
            return outputs
        out[...] = outputs
        return out
    scale = steps.noise.sigma if law == "normal" else steps.noise.scale
    noise = draw_named(run, law, 0.0, scale, (size, x.size))
    outputs = noise + x
    return outputs if steps.factor == 1.0 else outputs * steps.factor


def _record_native_draw_as_step(
    run: TracedRun, steps: Any, x: Any, size: int, sample: Callable[[Any], Any]
) -> Any:
    law = native.facts_about_noise(steps.noise)

    def find_loss(first: Any, second: Any) -> tuple[float, float]:
        if np.shape(first) != np.shape(second):
            return math.inf, math.inf
        order = 2 if law.norm == "l2" else 1
        gap = _clip_vector(steps.clip, first) - _clip_vector(steps.clip, second)
        distance = float(np.linalg.norm(gap, order))
        if not distance or law.blind or not size:
            return distance, 0.0
        if law.cost is None:
            return distance, math.inf
        loss = law.cost(steps.noise, distance, int(np.count_nonzero(gap))).epsilon
        return distance, size * loss

    name = type(steps.noise).__name__
    return run.record_noisy_call(name, x, lambda: sample(int(run.base.integers(2**62))), find_loss)


def _clip_vector(clip: Any, x: Any) -> Any:
    if clip is None:
        return x
    length = np.linalg.norm(x, 1 if clip.norm == "l1" else 2)
    return x * min(1.0, clip.radius / length) if length else x


def _noise_replacer(law: str) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def draw(self: Any, shape: Any, device: Any, generator: Any = None) -> Any:
            run = get_active_run()
            if run is None or run.tensors is None or run.tensors.has_constant_seed(generator):
                return original(self, shape, device, generator)
            return run.tensors.draw_named(law, 0.0, 1.0, shape, run.tensors.torch.float64)

        return draw

    return make


def _make_traced_forward(original: Any) -> Any:
    def forward(self: Any, x: Any, *arguments: Any, **named: Any) -> Any:
        run = get_active_run()
        if run is None:
            return original(self, x, *arguments, **named)
        return _record_layer_as_step(run, self, x, lambda: original(self, x, *arguments, **named))

    return forward


def _record_layer_as_step(run: TracedRun, layer: Any, x: Any, call: Callable[[], Any]) -> Any:
    """Treat the call of an `L2LaplaceNoise` layer as one step with a known privacy loss."""
    scale = layer.scale

    def find_loss(first: Any, second: Any) -> tuple[float, float]:
        if first.shape != second.shape:
            return math.inf, math.inf
        distance = float(np.linalg.norm(first - second, axis=-1).sum())
        return distance, distance / scale

    rows = np.array(x.detach().double().tolist())
    return run.record_noisy_call(type(layer).__name__, rows, call, find_loss)


def list_dpcore_patches(get_run: Callable[[], TracedRun | None]) -> list[Patch]:
    """List dpcore's own functions that draw noise, with their replacements during a trace.

    Noise layers for torch are included only if they were imported.
    """
    patches: list[Patch] = [
        (owner, "fill_outputs", _make_traced_sampler) for owner in (native, sources)
    ]
    for place, name, method, law in _LAYERS:
        layer = attribute_if_imported(place, name)
        if layer is not None:
            patches.append((layer, method, _noise_replacer(law) if law else _make_traced_forward))
    return patches
