"""Messages of wrong calls of `dpcore.torch`: the argument, and a word of the remedy."""

from __future__ import annotations

import numpy as np
from shared_encoders import WIDTH, hashed
from shared_extras import needs
from shared_messages import check_messages

import dpcore
from dpcore import calibration

torch = needs("torch")
nn = torch.nn

from dpcore.torch import (  # noqa: E402
    Clip,
    DPTextNoiseLayer,
    LaplaceNoise,
    MinMax,
    Normalise,
    PrivateEncoder,
    Project,
    mechanism,
    noise_sources,
)

PAIR = ("he has cancer", "he has the flu")

ROWS = np.random.default_rng(0).normal(size=(50, WIDTH)) * np.arange(1.0, WIDTH + 1)

X = torch.linspace(-1.0, 1.0, 24).reshape(6, 4)

VALUE_ERRORS = [
    # The noise of least error is chosen before a text is seen, and the signal that is left is said.
    (lambda: calibration.noise_errors(Clip("l2", 1.0).range(3), 0.0), "epsilon", "a finite"),
    (lambda: calibration.noise_errors(Clip("l2", 1.0).range(3), 1.0, 1.0), "delta", "a finite"),
    # Noise layers told what they cannot do.
    (lambda: LaplaceNoise(sensitivity=1.0, epsilon=0.0), "epsilon", "a finite number above"),
    (lambda: LaplaceNoise(sensitivity=-1.0, epsilon=1.0), "sensitivity", "a finite number"),
    (lambda: LaplaceNoise(sensitivity=1.0, epsilon=2.0, trainable=True, cap=1.0), "epsilon",
     "at most the cap, 1"),
    (lambda: DPTextNoiseLayer(1.0, nan="keep"), "nan", "one of 'zero', 'resample'"),
    # Encoders with noise as mechanisms: a text is encoded once, by a random encoder for each draw.
    (lambda: mechanism(hashed, None, "cuda:99"), "device", "one of this machine"),
    (lambda: mechanism(hashed, torch.nn.BatchNorm1d(WIDTH)), "noise", "without a batch norm"),
    (lambda: dpcore.audit(mechanism(hashed, LaplaceNoise(1.0)), ("a", " "), claim=1.0), "x",
     "a text that is not empty"),
    (lambda: dpcore.audit(mechanism(hashed, LaplaceNoise(1.0)), ("a film", "film a"), claim=1.0),
     "pair", "does not encode to one vector"),
    (lambda: dpcore.audit(mechanism(hashed, LaplaceNoise(1.0)), None, claim=1.0), "pair", "given"),
    # Private encoders: the noise follows from the transform, what does not suffice is refused.
    (lambda: PrivateEncoder(lambda texts: [len(text) for text in texts], Clip("l1", 1.0),
     epsilon=8.0), "", "shape (9, width)"),
    (lambda: PrivateEncoder(lambda texts: [], Clip("l1", 1.0), epsilon=8.0), "",
     "one row a text"),
    (lambda: PrivateEncoder(lambda texts: np.full((len(texts), 2), np.nan), Clip("l1", 1.0),
     epsilon=8.0), "", "finite for every"),
    (lambda: PrivateEncoder(lambda texts: [[1.0] * len(text) for text in texts], Clip("l1", 1.0),
     epsilon=8.0), "", "of one width for all"),
    (lambda: PrivateEncoder(lambda texts: np.zeros((len(texts), 3, 2)), Clip("l1", 1.0),
     epsilon=8.0), "", "got (9, 3, 2)"),
    (lambda: dpcore.audit(PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0), PAIR,
     attack=dpcore.attacks.Timing(), trials=1000), "attack", "another than Timing where a text"),
    (lambda: PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=0.0), "epsilon", "a finite"),
    (lambda: PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0, delta=1e-5), "delta",
     "0 for laplace noise"),
    (lambda: PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0, noise="gaussian"), "delta",
     "above 0 for Gaussian noise"),
    (lambda: PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0, noise="cauchy"), "noise",
     "one of 'laplace', 'gaussian'"),
    # Projections and centres from public rows: what they compute, refuse, save and say.
    (lambda: Project(ROWS, 7), "dim", "at most the width, the numbers in a row"),
    (lambda: Project(ROWS[:3], 4), "dim", "at most the number of rows (3)"),
    (lambda: Project(ROWS, 0), "dim", "an integer at least 1"),
    (lambda: Project(np.full((5, 6), 0.1), 1), "rows", "rows that vary in 1 directions at"),
    (lambda: Project(ROWS[:3], 3), "rows", "vary in 3 directions at least"),
    (lambda: Project(ROWS * [1, 1, 1, 1, 1, np.nan], 1), "rows", "finite numbers"),
    (lambda: Project(ROWS[0], 1), "rows", "an array of finite numbers of shape (n"),
    (lambda: Project("random", 7, width=6), "dim", "at most the width"),
    (lambda: Project("principal", 2), "rows", "vectors of public texts, shape"),
    (lambda: PrivateEncoder(hashed, list(), epsilon=8.0), "transform", "one transform at least"),
    (lambda: PrivateEncoder(hashed, [Project(ROWS[:, :5], 2), Clip("l1", 1.0)], epsilon=8.0), "x",
     "of 5 entries a"),
    (lambda: PrivateEncoder(hashed, Clip("l1", 1.0, center=[1.0, 2.0]), epsilon=8.0), "dim",
     "of 2 entries a row"),
    (lambda: PrivateEncoder(hashed, Clip("l1", 1.0, center=[1.0, np.nan]), epsilon=8.0), "center",
     "finite numbers"),
    (lambda: PrivateEncoder(hashed, Clip("l1", 1.0, center=ROWS, public_rows=3), epsilon=8.0),
     "public_rows", "the number of rows, 50"),
    # Sources of noise: every generator, and inputs and outputs of every kind.
    (lambda: noise_sources(nn.Dropout(0.5), X[:0]), "inputs", "tensors with at least one number"),
    # Transforms: those of `dpcore.sensitivity`, with no row outside after rounding to any dtype.
    (lambda: Clip("l3", 1.0), "norm", "one of 'l1', 'l2', 'linf'"),
    (lambda: Clip("l2", 0.0), "radius", "a finite number above 0"),
    (lambda: MinMax()(torch.zeros(3, 1)), "x", "dim >= 2: one entry has no range"),
    (lambda: MinMax().range(1), "dim of min-max rows", "at least 2, for a row of one entry has"),
]  # fmt: skip
TYPE_ERRORS = [
    # Noise layers told what they cannot do.
    (lambda: LaplaceNoise(), "scale", "given, or else sensitivity and epsilon"),
    (lambda: LaplaceNoise(epsilon=1.0), "scale", "given, or else"),
    (lambda: LaplaceNoise(scale=1.0, epsilon=1.0), "scale", "left out where sensitivity"),
    (lambda: LaplaceNoise(scale=1.0, trainable=True), "scale", "left out"),
    (lambda: LaplaceNoise(scale=1.0, cap=1.0), "cap", "left out where no epsilon is learnt"),
    (lambda: LaplaceNoise(sensitivity=1.0, epsilon=1.0, trainable=1), "trainable", "True"),
    (lambda: LaplaceNoise(1.0)(torch.zeros(2), generator=3), "generator", "a torch.Generator"),
    # Encoders with noise as mechanisms: a text is encoded once, by a random encoder for each draw.
    (lambda: dpcore.audit(torch.nn.Linear(2, 2), PAIR, claim=1.0), "mechanism", "write"),
    (lambda: mechanism(hashed, "laplace"), "noise", "a torch module, such as LaplaceNoise"),
    (lambda: mechanism(hashed, LaplaceNoise), "noise", "a torch module"),
    (lambda: mechanism("text", None), "encoder", "a SentenceTransformer, a pair"),
    (lambda: dpcore.audit(mechanism(hashed, LaplaceNoise(1.0)), (["a"], ["b"]), claim=1.0), "x",
     "a text (a string)"),
    # Private encoders: the noise follows from the transform, what does not suffice is refused.
    (lambda: PrivateEncoder(lambda texts: 1j * np.ones((len(texts), 2)), Clip("l1", 1.0),
     epsilon=8.0), "", "real numbers"),
    (lambda: PrivateEncoder(hashed, lambda x: x, epsilon=8.0), "transform", "Clip, MinMax"),
    (lambda: PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0, noise=1.0), "noise", "one of"),
    (lambda: PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0, strict=1), "strict",
     "True or False"),
    # Projections and centres from public rows: what they compute, refuse, save and say.
    (lambda: Project([["a"]], 1), "rows", "an array of finite numbers"),
    (lambda: Project(ROWS, 1, width=6), "width", 'left out unless rows are "random"'),
    (lambda: Project(ROWS, 1, rng=6), "rng", 'left out unless rows are "random"'),
    (lambda: Project("random", 2), "width", "given for random directions"),
    (lambda: PrivateEncoder(hashed, Project(ROWS, 2), epsilon=8.0), "transform", "bounded"),
    (lambda: PrivateEncoder(hashed, [Clip("l2", 1.0), Project(ROWS, 2)], epsilon=8.0), "transform",
     "bounded"),
    (lambda: PrivateEncoder(hashed, Clip("l1", 1.0, public_rows=3), epsilon=8.0), "public_rows",
     "left out where"),
    # Transforms: those of `dpcore.sensitivity`, with no row outside after rounding to any dtype.
    (lambda: Normalise(2), "norm", "one of"),
]  # fmt: skip
ATTRIBUTE_ERRORS = [
    # Private encoders: the noise follows from the transform, what does not suffice is refused.
    (lambda: PrivateEncoder(lambda text: text.lower(), Clip("l1", 1.0), epsilon=8.0), "",
     "'list' object has no attribute 'lower'"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
    check_messages(AttributeError, ATTRIBUTE_ERRORS)
