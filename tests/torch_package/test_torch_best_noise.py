"""The noise of least error is chosen before a text is seen, and the signal that is left is said."""

import math

import numpy as np
import pytest
from shared_encoders import WIDTH, hashed
from shared_extras import needs

from dpcore import calibration

torch = needs("torch")

from dpcore.torch import (  # noqa: E402
    Clip,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    MinMax,
    PrivateEncoder,
    SharedNoise,
)


@pytest.mark.parametrize(
    ("transform", "delta", "kind"),
    [
        (Clip("l2", 1.0), 0.0, L2LaplaceNoise),
        (Clip("l2", 1.0), 0.5, GaussianNoise),
        (Clip("l2", 1.0), 1e-30, L2LaplaceNoise),
        (Clip("l1", 1.0), 0.0, LaplaceNoise),
    ],
)
def test_the_noise_of_least_error_is_chosen(transform, delta, kind):
    private = PrivateEncoder(hashed, transform, epsilon=8.0, delta=delta, noise="best")
    assert type(private.noise) is kind
    assert private.true_epsilon <= 8.0 * (1.0 + 1e-9)
    assert set(private.errors) == {"laplace", "l2_laplace", *["gaussian"] * (delta > 0.0)}
    errors = private.errors
    assert errors == calibration.noise_errors(private.domain, 8.0, delta)
    chosen = min(errors, key=errors.get)
    line = f"{chosen}: least expected squared error of a vector, {errors[chosen]:.4g}"
    assert line in str(private)
    assert all(f"{name} {errors[name]:.4g}" in str(private) for name in errors if name != chosen)


def test_what_was_chosen_from_is_known_after_loading(tmp_path):
    private = PrivateEncoder(hashed, Clip("l2", 1.0), epsilon=8.0, delta=1e-9, noise="best")
    folder = private.save_pretrained(tmp_path / "best")
    assert PrivateEncoder.from_pretrained(folder, encoder=hashed).errors == private.errors != {}
    given = PrivateEncoder(hashed, Clip("l2", 1.0), epsilon=8.0, noise="laplace")
    folder = given.save_pretrained(tmp_path / "given")
    assert PrivateEncoder.from_pretrained(folder, encoder=hashed).errors == {}


@pytest.mark.parametrize("noise", ["laplace", "l2_laplace", "gaussian"])
def test_errors_are_those_of_the_layers(noise):
    delta = 1e-5 if noise == "gaussian" else 0.0
    private = PrivateEncoder(hashed, Clip("l2", 1.0), epsilon=8.0, delta=delta, noise=noise)
    assert private.errors == {}
    expected = calibration.noise_errors(private.domain, 8.0, 1e-5)[noise]
    noisy = private.noise(torch.zeros(40_000, WIDTH), torch.Generator().manual_seed(1))
    squares = noisy.double().square().sum(dim=1).numpy()
    # Five standard errors: of 3 fixed seeds none is as far by chance (p < 1e-5).
    error = 5.0 * squares.std() / math.sqrt(len(squares))
    assert abs(squares.mean() - expected) < error
    assert abs(squares.mean() - 1.1 * expected) > error
    assert "least expected" not in str(private)
    entry, level, share = private.measure_signal()
    assert level == pytest.approx(math.sqrt(expected / WIDTH))
    clean = private.clean(private.probe).double().numpy()
    assert entry == pytest.approx(np.sqrt((clean**2).mean()))
    assert share == pytest.approx(entry**2 / (entry**2 + level**2))


def test_print_says_when_no_utility_is_to_be_expected():
    for epsilon, few in ((0.1, True), (100.0, False)):
        text = str(PrivateEncoder(hashed, Clip("l2", 1.0), epsilon=epsilon, noise="best"))
        assert "% of a vector's energy is signal (root mean squares over" in text
        assert ("NO UTILITY IS TO BE EXPECTED below 2 %" in text) is few
    shared = PrivateEncoder(hashed, MinMax(), epsilon=8.0, noise=SharedNoise(1.0), strict=False)
    assert shared.measure_signal() is None
    assert "not known: no law of the noise is" in str(shared)
