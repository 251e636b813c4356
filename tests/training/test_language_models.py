"""Losses of records under a causal language model of transformers, in an audit of its training."""

import warnings

import numpy as np
import pytest
from shared_extras import needs

import dpcore
from dpcore.training import audit_run, language_model_losses

torch = needs("torch")
transformers = needs("transformers")

VOCABULARY = 40
SIZES = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 0}
LLAMA = SIZES | {
    "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
    "max_position_embeddings": 12,
}  # fmt: skip
RNG = np.random.default_rng(7)
RECORDS, CANARIES = (RNG.integers(VOCABULARY, size=(n, 8)).tolist() for n in (40, 100))


def gpt2(**options):
    torch.manual_seed(1)
    sizes = SIZES | {"n_positions": 12, "n_embd": 32, "n_layer": 1, "n_head": 2}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes | options))


def llama():
    torch.manual_seed(1)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))


def bert(kind, **options):
    sizes = {name: value for name, value in LLAMA.items() if name in ("vocab_size", "hidden_size")}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    return getattr(transformers, kind)(transformers.BertConfig(**sizes | options))


@pytest.mark.parametrize("make", [gpt2, llama])
@pytest.mark.parametrize("batch", [1, 2, 32])
def test_losses_are_those_of_each_record_alone(make, batch):
    model, records = make(), [RECORDS[0], RECORDS[1][:2], RECORDS[2][:5]]
    # Dropout is in use before and after, but not within.
    assert model.training
    losses = language_model_losses(model, batch=batch)(records)
    assert all(module.training for module in model.modules())
    model.eval()
    for loss, record in zip(losses, records, strict=True):
        tokens = torch.tensor([record])
        assert loss == pytest.approx(model(input_ids=tokens, labels=tokens).loss.item(), rel=1e-5)


def test_records_are_lists_arrays_tensors_and_texts():
    losses, rows = language_model_losses(gpt2()), np.array(RECORDS)
    usual = losses(RECORDS)
    assert usual.shape == (40,)
    for records in (rows, torch.from_numpy(rows), [np.int32(row) for row in rows]):
        assert np.array_equal(losses(records), usual)
    texts = [" ".join(map(str, record)) for record in RECORDS]

    def tokenizer(texts):
        return {"input_ids": [[int(word) for word in text.split()] for text in texts]}

    assert np.array_equal(language_model_losses(gpt2(), tokenizer)(texts), usual)
    assert losses([]).shape == (0,)


def test_16_bits_do_not_make_losses_equal():
    model = gpt2().to(torch.bfloat16)
    assert len(np.unique(language_model_losses(model)(CANARIES))) == len(CANARIES)


@pytest.mark.parametrize(("epochs", "is_refuted"), [(0, False), (40, True)])
def test_a_training_that_learns_its_canaries_is_refuted(epochs, is_refuted):
    def fit(records):
        model = gpt2()
        optimiser, batch = torch.optim.Adam(model.parameters(), lr=1e-2), torch.tensor(records)
        for _ in range(epochs):
            optimiser.zero_grad()
            model(input_ids=batch, labels=batch).loss.backward()
            optimiser.step()
        return language_model_losses(model)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpcore.AssumptionWarning)
        report = audit_run(fit, RECORDS, canaries=CANARIES, guesses=40, claim=2.0, rng=7)
    assert report.refuted is is_refuted
    assert (report.auc > 0.95) == is_refuted


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: torch.nn.Linear(2, 2), "model must be a causal language model of transformers"),
        (lambda: bert("BertForMaskedLM"), "model must be a causal language model"),
        (lambda: bert("BertLMHeadModel"), "whose logits do not depend on later tokens"),
    ],
)
def test_other_models_are_refused(make, said):
    with pytest.raises(TypeError, match=said):
        language_model_losses(make())


@pytest.mark.parametrize(
    ("records", "kind", "said"),
    [
        (["a text"], TypeError, "record 0 must be a list of token numbers .tokenizer= reads texts"),
        ([[1, 2], [0.5, 1.0]], TypeError, "record 1 must be a list of token numbers"),
        ([[1, 2], [3]], ValueError, "record 1 must be of 2 tokens or more"),
        ([[1] * 13], ValueError, "record 0 must be of at most 12 tokens"),
    ],
)
def test_records_that_cannot_be_scored_are_refused(records, kind, said):
    losses = language_model_losses(gpt2())
    with pytest.raises(kind, match=said):
        losses(records)
    with pytest.raises(TypeError, match="tokenizer must be"):
        language_model_losses(gpt2(), "tokenizer")


def test_a_model_is_taken_as_opacus_wraps_it():
    wrapped = needs("opacus").GradSampleModule(llama(), strict=False)
    usual = language_model_losses(llama())(RECORDS)
    assert np.array_equal(language_model_losses(wrapped)(RECORDS), usual)


def test_a_causal_decoder_of_another_kind_is_taken():
    model = bert("BertLMHeadModel", is_decoder=True)
    assert np.isfinite(language_model_losses(model)(RECORDS)).all()
