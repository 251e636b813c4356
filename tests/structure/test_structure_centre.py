"""Noise behind a clip: the tail is measured from what the noise is added to, not from the input."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.structure import FAULTS, inspect

FLOAT32 = next(fault for fault in FAULTS if fault.name == "float32_laplace").mechanism
ALPHA = 1e-6


def sound(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))


CLIPS = {
    "box": lambda x: np.clip(x, -1.0, 1.0),
    "norm": lambda x: x / max(1.0, float(np.linalg.norm(x))),
    "image": lambda x: np.clip(x, 0.0, 1.0),
    "away from 0": lambda x: np.clip(x, 2.0, 5.0),
}


def behind(clip, noise):
    return lambda x, size, rng: noise(clip(np.asarray(x, np.float64)), size, rng)


def point(dim):
    return np.random.default_rng(0).normal(size=dim) * 5.0


@pytest.mark.parametrize("name", CLIPS)
def test_a_grid_is_found_behind_a_clip(name):
    found = inspect(behind(CLIPS[name], FLOAT32), point(64), rng=1)["grid"]
    assert found.flagged, str(found)
    assert "measured from" in found.what
    # Twins: the same clip before sound noise, and the same noise without a clip.
    clear = inspect(behind(CLIPS[name], sound), point(64), rng=1, draws=4000)
    assert (clear["grid"].flagged, clear["range"].flagged) == (False, False)


def test_the_input_stays_the_centre_where_it_is_the_median():
    found = inspect(FLOAT32, point(64), rng=1)["grid"]
    assert found.flagged
    assert "measured from" not in found.what
    assert "measured from" not in inspect(sound, point(3), rng=1, draws=500)["range"].what


def test_a_layer_that_is_silent_at_0_is_seen_at_its_wall():
    def layer(x, size, rng):
        return FLOAT32(np.clip(x, -1.0, 1.0), size, rng) if np.any(x) else np.zeros((size, len(x)))

    found = inspect(layer, point(64), rng=1)["grid"]
    assert found.flagged
    assert "clipped at a wall" in found.what

    def refusing(x, size, rng):
        if not np.any(x):
            raise ValueError("no input")
        return layer(x, size, rng)

    assert inspect(refusing, point(64), rng=1)["grid"].flagged


def test_what_no_clip_explains_is_measured_from_the_input():
    """Noise off its centre everywhere is that, and no clip."""
    found = inspect(lambda x, n, rng: sound(x, n, rng) + 3.0, point(5), rng=1, draws=2000)
    assert found["off_centre"].flagged
    assert "measured from" not in found["grid"].what


def test_sound_noise_behind_a_clip_is_flagged_no_more_than_stated():
    from scipy import stats

    layer = behind(CLIPS["box"], sound)
    options = {"draws": 400, "false_alarm": 0.05}
    alarms = sum(not inspect(layer, point(3), rng=s, **options).passed for s in range(150))
    assert stats.binom.sf(alarms - 1, 150, 0.05) > ALPHA
