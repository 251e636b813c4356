"""Messages of wrong calls of `dpcore.torch`: the argument, and a word of the remedy."""

import math
from functools import partial

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
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    MinMax,
    Normalise,
    PrivateEncoder,
    Project,
    SharedNoise,
    mechanism,
    noise_sources,
)
from dpcore.torch.private_encoder import farthest_rows  # noqa: E402

PAIR = ("he has cancer", "he has the flu")

ROWS = np.random.default_rng(0).normal(size=(50, WIDTH)) * np.arange(1.0, WIDTH + 1)

X = torch.linspace(-1.0, 1.0, 24).reshape(6, 4)

LAYERS = [
    (LaplaceNoise, "scale"), (L2LaplaceNoise, "scale"), (DPTextNoiseLayer, "scale"),
    (SharedNoise, "scale"), (GaussianNoise, "sigma"),
]  # fmt: skip
INTEGERS = [torch.zeros(2, dtype=kind) for kind in (torch.int64, torch.complex64, torch.bool)]
NOISY = mechanism(hashed, LaplaceNoise(1.0))
TINY = nn.Linear(1, 1).eval()
LEARNT = LaplaceNoise(sensitivity=1.0, epsilon=1.0, trainable=True)
TRANSFORMS = [Clip("l1", 1.0), MinMax(), Normalise()]
NAN = torch.tensor([[0.0, 1.0], [0.0, math.nan], *[[0.0, 1.0]] * 7])
INFINITE = torch.tensor([[0.0, 1.0], *[[0.0, math.inf]] * 8])


def private(encoder=hashed, transform=None, **given):
    transform = Clip("l1", 1.0) if transform is None else transform
    return lambda: PrivateEncoder(encoder, transform, **{"epsilon": 8.0, **given})


PRIVATE = private()()


def load_state(state):
    return lambda: LaplaceNoise(1.0).load_state_dict({"_extra_state": state})


def audit(pair, mechanism=NOISY, **given):
    return lambda: dpcore.audit(mechanism, pair, claim=1.0, **given)


VALUE_ERRORS = [
    # The noise of least error is chosen before a text is seen, and the signal that is left is said.
    (lambda: calibration.noise_errors(Clip("l2", 1.0).range(3), 0.0), "epsilon", "a finite"),
    (lambda: calibration.noise_errors(Clip("l2", 1.0).range(3), 1.0, 1.0), "delta", "a finite"),
    # Noise layers.
    *((partial(kind, value), name,
       "a finite number above 0 and at most")
      for kind, name in LAYERS for value in (0.0, -1.0, math.inf, math.nan, 1e301)),
    *((partial(kind(1.0).loss, [0.0, 1.0], [1.0]), "x_prime", "a vector of 2 entries")
      for kind, _ in LAYERS),
    *((partial(kind(1.0).loss, [math.nan], [1.0]), "x", "a non-empty vector of finite numbers")
      for kind, _ in LAYERS),
    (lambda: L2LaplaceNoise(1.0)(torch.tensor(0.0)), "x", "of a shape (..., dim), got ()"),
    (lambda: LaplaceNoise(sensitivity=1.0, epsilon=0.0), "epsilon", "a finite number above"),
    (lambda: LaplaceNoise(sensitivity=-1.0, epsilon=1.0), "sensitivity", "a finite number"),
    (lambda: LaplaceNoise(sensitivity=1.0, epsilon=2.0, trainable=True, cap=1.0), "epsilon",
     "at most the cap, 1"),
    (lambda: DPTextNoiseLayer(1.0, nan="keep"), "nan", "one of 'zero', 'resample'"),
    # States of another layer, or that something has cast.
    *((load_state(state), "the state of LaplaceNoise", "a tensor of 1 flo")
      for state in (torch.tensor([0.1]), torch.tensor([0.1, 0.2], dtype=torch.float64))),
    (load_state(torch.tensor([-1.0], dtype=torch.float64)), "scale", "a finite number above 0"),
    (lambda: LaplaceNoise(1.0).load_state_dict(LEARNT.state_dict()), "", "of fixed scale saves it"),
    (lambda: Project(ROWS, 1).set_extra_state(torch.zeros(3)), "the state of Project", "2 int64"),
    # Encoders with noise as mechanisms: a text is encoded once, by a random encoder for each draw.
    (lambda: mechanism(hashed, None, "cuda:99"), "device", "one of this machine"),
    (lambda: mechanism(hashed, nn.BatchNorm1d(WIDTH)), "noise", "without a batch norm"),
    (audit(("a", " ")), "x", "a text that is not empty"),
    (audit(("a film", "film a")), "pair", "does not encode to one vector"),
    (audit(None), "pair", "given"),
    # Private encoders: the noise follows from the transform, what does not suffice is refused.
    (private(lambda texts: [len(text) for text in texts]), "", "shape (9, width)"),
    (private(lambda texts: np.ones((1 + len(texts), 3))), "", "one row a text"),
    (private(lambda texts: np.ones((len(texts), 0))), "", "at least one number wide"),
    (private(lambda texts: np.ones((len(texts), 2 + (len(texts[0]) > 100)))), "",
     "of width 2 in every call"),
    (private(lambda texts: np.full((len(texts), 2), np.nan)), "", "finite for every text"),
    (private(lambda texts: [[1.0] * len(text) for text in texts]), "", "of one width for all"),
    (audit(PAIR, PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0), trials=1000,
           attack=dpcore.attacks.Timing()), "attack", "another than Timing where a text"),
    (private((TINY, str.split, "max")), "pooling", "one of 'mean', 'cls'"),
    (private(epsilon=0.0), "epsilon", "a finite"),
    (private(probe=["a text"]), "probe", "at least two different texts"),
    (lambda: private({text: [1.0] for text in PAIR})().encode(["a film"]), "texts",
     "keys of the encoder, a dictionary of 2"),
    (private(delta=1e-5), "delta", "0 for laplace noise"),
    (private(noise="gaussian"), "delta", "above 0 for Gaussian noise"),
    (private(noise="cauchy"), "noise", "one of 'laplace', 'gaussian'"),
    (lambda: PRIVATE.encode(["a", ""]), "texts[1]", "a text that is not empty, got ''"),
    *((partial(PRIVATE.worst_pair, texts), "texts", "at least two different texts")
      for texts in (["a", "a"], [])),
    (lambda: farthest_rows(torch.zeros(3, 2), "linf"), "norm", "one of 'l1', 'l2'"),
    (lambda: PRIVATE.to("toaster"), "device", "one of this machine"),
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
    (private(transform=[]), "transform", "one transform at least"),
    (private(transform=[Project(ROWS[:, :5], 2), Clip("l1", 1.0)]), "x", "of 5 entries a"),
    (private(transform=Clip("l1", 1.0, center=[1.0, 2.0])), "dim", "of 2 entries a row"),
    (lambda: Clip("l1", 1.0, center=[1.0, np.nan]), "center", "finite numbers"),
    (lambda: Clip("l1", 1.0, center=ROWS, public_rows=3), "public_rows", "the number of rows, 50"),
    # Sources of noise: every generator, and inputs and outputs of every kind.
    (lambda: noise_sources(nn.Dropout(0.5), X[:0]), "inputs", "tensors with at least one number"),
    # Transforms: those of `dpcore.sensitivity`, with no row outside after rounding to any dtype.
    (lambda: Clip("l3", 1.0), "norm", "one of 'l1', 'l2', 'linf'"),
    (lambda: Clip("l2", 0.0), "radius", "a finite number above 0"),
    (lambda: MinMax()(torch.zeros(3, 1)), "x", "dim >= 2: one entry has no range"),
    (lambda: MinMax().range(1), "dim of min-max rows", "at least 2, for a row of one entry has"),
    *((partial(kind, x), "x", "of a shape (..., dim) with dim >= 1")
      for kind in TRANSFORMS for x in (torch.tensor(1.0), torch.zeros(3, 0))),
    *((partial(kind, x), name, "finite numbers, got [0.0, nan]") for kind in TRANSFORMS
      for x, name in ((NAN, "row 1 of x"), (NAN[None], "row (0, 1) of x"), (NAN[1], "x"))),
    *((partial(kind, INFINITE), "rows 1, 2, 3, 4, 5, ... of x", "finite numbers")
      for kind in TRANSFORMS),
]  # fmt: skip
TYPE_ERRORS = [
    # Noise layers.
    *((partial(kind, value), name, "a finite number above 0")
      for kind, name in LAYERS for value in ("1", True, [1.0], 1j)),
    *((partial(kind, torch.tensor(1.0, requires_grad=learnt)), name, "a number, not a tensor")
      for kind, name in LAYERS for learnt in (False, True)),
    *((partial(kind(1.0), x), "x", "a tensor of float64, float32, bfloat16 or float16")
      for kind, _ in LAYERS for x in (*INTEGERS, [0.0, 1.0], "text")),
    (lambda: LaplaceNoise(), "scale", "given, or else sensitivity and epsilon"),
    (lambda: LaplaceNoise(epsilon=1.0), "scale", "given, or else"),
    (lambda: LaplaceNoise(scale=1.0, epsilon=1.0), "scale", "left out where sensitivity"),
    (lambda: LaplaceNoise(scale=1.0, trainable=True), "scale", "left out"),
    (lambda: LaplaceNoise(scale=1.0, cap=1.0), "cap", "left out where no epsilon is learnt"),
    (lambda: LaplaceNoise(sensitivity=1.0, epsilon=1.0, trainable=1), "trainable", "True"),
    (lambda: LaplaceNoise(1.0)(torch.zeros(2), generator=3), "generator", "a torch.Generator"),
    (load_state({"scale": 1.0}), "the state of LaplaceNoise", "a tensor of 1 flo"),
    (lambda: Project(ROWS, 1).set_extra_state(None), "the state of Project", "2 int64"),
    # Encoders with noise as mechanisms: a text is encoded once, by a random encoder for each draw.
    (audit(PAIR, nn.Linear(2, 2)), "mechanism", "write"),
    (lambda: mechanism(hashed, "laplace"), "noise", "a torch module, such as LaplaceNoise"),
    (lambda: mechanism(hashed, LaplaceNoise), "noise", "a torch module"),
    (lambda: mechanism("text", None), "encoder", "a SentenceTransformer, a pair"),
    (audit((["a"], ["b"])), "x", "a text (a string)"),
    (audit(PAIR, mechanism(hashed, nn.LSTM(WIDTH, 2).double())),
     "outputs of hashed, LSTM(6, 2)", "one tensor"),
    # Private encoders: the noise follows from the transform, what does not suffice is refused.
    *((private(encoder), "encoder", "a SentenceTransformer, a pair")
      for encoder in ("MiniLM", None, (1, 2))),
    (private((TINY, None)), "tokenizer", "the tokenizer of the model"),
    (private(lambda texts: np.ones((len(texts), 2), complex)), "", "real numbers"),
    (private(lambda texts: torch.ones(len(texts), 2, dtype=torch.complex64)), "", "real numbers"),
    (private(lambda texts: texts), "", "real numbers"),
    (private(lambda texts: {"a": texts}), "", "one tensor"),
    (private(lambda texts: (np.ones((len(texts), 2)), 1)), "", "no tuple"),
    (private(transform=lambda x: x), "transform", "Clip, MinMax"),
    (private(noise=1.0), "noise", "one of"),
    (private(rounding="low"), "rounding", "a"),
    (private(strict=1), "strict", "True or False"),
    (lambda: PRIVATE.encode("a text"), "texts", "a list of texts, not a single string"),
    (lambda: PRIVATE.encode(["a", 3]), "texts[1]", "a text (a string), got 3"),
    (lambda: PRIVATE.encode(None), "texts", "a list of texts, got None"),
    (lambda: PRIVATE.save_pretrained(None), "folder", "a path, got None"),
    (lambda: PrivateEncoder.from_pretrained(3), "folder", "a path, got 3"),
    # Projections and centres from public rows: what they compute, refuse, save and say.
    (lambda: Project([["a"]], 1), "rows", "an array of finite numbers"),
    (lambda: Project(ROWS, 1, width=6), "width", 'left out unless rows are "random"'),
    (lambda: Project(ROWS, 1, rng=6), "rng", 'left out unless rows are "random"'),
    (lambda: Project("random", 2), "width", "given for random directions"),
    (private(transform=Project(ROWS, 2)), "transform", "bounded"),
    (private(transform=[Clip("l2", 1.0), Project(ROWS, 2)]), "transform", "bounded"),
    (lambda: Clip("l1", 1.0, public_rows=3), "public_rows", "left out where"),
    # Transforms: those of `dpcore.sensitivity`, with no row outside after rounding to any dtype.
    (lambda: Normalise(2), "norm", "one of"),
    *((partial(kind, x), "x", "a tensor of float64, float32, bfloat16 or") for kind in TRANSFORMS
      for x in ([[0.0, 1.0]], "text", torch.zeros(2, 2, dtype=torch.int32))),
]  # fmt: skip
MISSING_FILES = [
    (lambda: PrivateEncoder.from_pretrained("a/b"), "folder", "one that save_pretrained wrote"),
    (lambda: PrivateEncoder.from_pretrained("."), "", "must hold config.json"),
]
EXISTING_FILES = [(lambda: PRIVATE.save_pretrained(__file__), "folder", "where there is nothing")]
ATTRIBUTE_ERRORS = [(private(lambda text: text.lower()), "", "'list' object has no attribute")]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
    check_messages(AttributeError, ATTRIBUTE_ERRORS)
    check_messages(FileNotFoundError, MISSING_FILES)
    check_messages(FileExistsError, EXISTING_FILES)
