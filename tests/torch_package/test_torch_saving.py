"""Private encoders in folders: config.json and safetensors, no pickle, no network."""

import json
import socket

import numpy as np
import pytest
from shared_encoders import WIDTH, hashed, minilm, tiny_bert
from shared_extras import needs
from shared_messages import check_messages

torch = needs("torch")
needs("safetensors")

from dpcore.torch import (  # noqa: E402
    Clip,
    DPTextNoiseLayer,
    LaplaceNoise,
    MinMax,
    Normalise,
    PrivateEncoder,
    SharedNoise,
)

TEXTS = ["he has cancer", "a good film"]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refused(*arguments, **more):
        raise AssertionError("a connection was asked for")

    monkeypatch.setattr(socket.socket, "connect", refused)


def returns(private, folder, **given):
    private.save_pretrained(folder)
    again = PrivateEncoder.from_pretrained(folder, **given)
    assert repr(again) == repr(private)
    assert np.array_equal(again.encode(TEXTS, rng=1), private.encode(TEXTS, rng=1))
    return again


@pytest.mark.parametrize(
    ("transform", "given"),
    [
        (Clip("l1", 1.0), {"epsilon": 0.1}),
        (MinMax(), {"epsilon": 8.0, "noise": "l2_laplace"}),
        (Normalise("l2"), {"epsilon": 8.0, "delta": 1e-5, "noise": "gaussian"}),
        (MinMax(), {"epsilon": 8.0, "noise": SharedNoise(0.1), "strict": False}),
        (MinMax(), {"epsilon": 8.0, "noise": DPTextNoiseLayer(0.1, "resample"), "strict": False}),
        (
            Clip("l1", 1.0),
            {
                "epsilon": 8.0,
                "noise": LaplaceNoise(sensitivity=2.0, epsilon=0.1, trainable=True, cap=8.0),
                "strict": False,
            },
        ),
    ],
)
def test_a_function_is_handed_over_and_all_else_comes_back(tmp_path, transform, given):
    private = PrivateEncoder(hashed, transform, **given)
    again = returns(private, tmp_path / "folder", encoder=hashed)
    assert again.noise.scale == private.noise.scale
    words = json.loads((tmp_path / "folder" / "config.json").read_text())["noise"]
    assert words["class"] == type(private.noise).__name__.replace("DPTextNoiseLayer", "DPTextNoise")
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == ["config.json"]
    with pytest.raises(ValueError, match=r"encoder must be given for an encoder of one's own \(ha"):
        PrivateEncoder.from_pretrained(tmp_path / "folder")
    with pytest.raises(ValueError, match=f"encoder must be of width {WIDTH}, as saved, got 2"):
        PrivateEncoder.from_pretrained(
            tmp_path / "folder", encoder=lambda texts: np.eye(2)[[len(t) % 2 for t in texts]]
        )


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, 4)

    def forward(self, texts):
        return self.layer(torch.tensor(hashed(texts), dtype=torch.float32))


def test_of_a_module_the_weights_come_back(tmp_path):
    private = PrivateEncoder(Own().eval(), Clip("l1", 1.0), epsilon=8.0)
    other = Own().eval()
    assert not torch.equal(other.layer.weight, private.encoder.model.layer.weight)
    returns(private, tmp_path, encoder=other)
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "encoder.safetensors"}


def test_transformers_and_sentence_transformers(tmp_path):
    for pooling in ("mean", "cls"):
        model = (*tiny_bert(tmp_path), pooling)
        returns(PrivateEncoder(model, Clip("l1", 1.0), epsilon=8.0), tmp_path / pooling)
    private = PrivateEncoder(minilm(), Clip("l1", 1.0), epsilon=8.0)
    returns(private, tmp_path / "minilm")
    with pytest.raises(ValueError, match="encoder must be left out, for the folder holds one"):
        PrivateEncoder.from_pretrained(tmp_path / "minilm", encoder=hashed)
    (tmp_path / "minilm" / "encoder" / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"without files that could hold a pickle, got .*model.bin"
    ):
        PrivateEncoder.from_pretrained(tmp_path / "minilm")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"more": 1}, "key of .*config.json must be one of chosen, delta, encoder, .*, got 'more'"),
        ({"epsilon": None}, "epsilon"),
        ({"format": "other/1"}, "format of .* must be 'dpcore.PrivateEncoder/1', got 'other/1'"),
        ({"transform": {"class": "Linear"}}, "class of transform in config.json must be one of"),
        ({"noise": {"class": "LaplaceNoise", "sigma": 1.0}}, "have the arguments of LaplaceNoise"),
        ({"noise": {"class": "LaplaceNoise", "scale": 0.01}}, "noise must be enough for epsilon 8"),
        ({"encoder": {"kind": "pickle"}}, "kind of the encoder in config.json must be one of"),
        ({"encoder": 3}, "encoder in config.json must be an object"),
    ],
)
def test_a_config_that_was_changed(tmp_path, change, message):
    PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0).save_pretrained(tmp_path)
    file = tmp_path / "config.json"
    config = {**json.loads(file.read_text()), **change}
    file.write_text(json.dumps(config))
    with pytest.raises((ValueError, TypeError), match=message):
        PrivateEncoder.from_pretrained(tmp_path, encoder=hashed)


def test_wrong_folders(tmp_path):
    private = PrivateEncoder(hashed, Clip("l1", 1.0), epsilon=8.0)
    load, file = PrivateEncoder.from_pretrained, tmp_path / "config.json"
    missing = [
        (lambda: load("a/b"), "folder", "one that save_pretrained wrote, got a/b"),
        (lambda: load(tmp_path), "", "must hold config.json"),
    ]
    check_messages(FileNotFoundError, missing)
    paths = [(lambda: load(3), "folder", "a path, got 3"),
             (lambda: private.save_pretrained(None), "folder", "a path, got None")]  # fmt: skip
    check_messages(TypeError, paths)
    file.write_text("{")
    check_messages(ValueError, [(lambda: load(tmp_path), "", "config.json must be JSON")])
    taken = [(lambda: private.save_pretrained(file), "folder", "a path where there is nothing")]
    check_messages(FileExistsError, taken)
    file.write_text(json.dumps({"format": "dpcore.PrivateEncoder/1", "chosen": False}))
    check_messages(ValueError, [(lambda: load(tmp_path), "", "must be there, got 'delta'")])


class Bounding(torch.nn.Module):
    """A transform of one's own."""

    def forward(self, rows):
        return torch.tanh(rows)

    def range(self, dim):
        return Clip("linf", 1.0).range(dim)


def test_a_transform_of_ones_own_is_used_and_not_saved(tmp_path):
    private = PrivateEncoder(hashed, Bounding(), epsilon=8.0)
    assert private.noise.scale == pytest.approx(2.0 * WIDTH / 8.0)
    with pytest.raises(TypeError, match=r"transform must be one of dpcore\.torch, to be saved"):
        private.save_pretrained(tmp_path)
