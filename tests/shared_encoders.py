"""Small encoders of texts, one of each kind that `dpcore.torch` takes."""

from __future__ import annotations

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


def tiny_bert(folder: Path, dropout: float = 0.1, width: int = 8, layers: int = 1):
    """A transformer with its tokenizer, of random weights made here: (model, tokenizer)."""
    transformers = needs("transformers", "torch")
    torch = needs("torch")
    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    tokenizer = transformers.BertTokenizer(str(vocabulary), model_max_length=16)
    torch.manual_seed(3)
    config = transformers.BertConfig(
        vocab_size=len(WORDS) + 5,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * width,
        max_position_embeddings=16,
        hidden_dropout_prob=dropout,
    )
    return transformers.BertModel(config).eval(), tokenizer


def tiny_sentences(folder: Path):
    """A model of sentence-transformers, the mean over the tokens of three layers, made here."""
    sentences = needs("sentence_transformers", "torch")
    for part in tiny_bert(folder, width=96, layers=3):
        part.save_pretrained(folder / "bert")
    return sentences.SentenceTransformer(str(folder / "bert"), device="cpu")
