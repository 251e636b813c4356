"""TfidfSVD: fitted on train only, the same vector in every batch, saved and loaded."""

import json

import numpy as np
import pytest
from shared_extras import needs
from shared_messages import check_messages
from sklearn.feature_extraction.text import TfidfVectorizer

from dpcore.text import Corpus, TfidfSVD, generated


@pytest.fixture(scope="module")
def corpus():
    return generated("topics", 500, rng=1)


@pytest.fixture(scope="module")
def encoder(corpus):
    return TfidfSVD(30).fit(corpus)


def test_it_is_tf_idf_and_a_truncated_svd(corpus, encoder):
    weights = TfidfVectorizer(sublinear_tf=True, min_df=2)
    _, strength, directions = np.linalg.svd(weights.fit_transform(corpus.train.texts).toarray())
    wanted = weights.transform(corpus.test.texts) @ directions[:10].T
    found = encoder.encode(corpus.test.texts)
    assert (found.dtype, found.shape) == (np.float64, (len(corpus.test), 30))
    # Directions are known but for their signs, and the randomised ones nearly so.
    assert strength[9] > strength[10] * 1.001
    products = np.abs(np.sum(found[:, :4] * wanted[:, :4], axis=0))
    lengths = np.linalg.norm(found[:, :4], axis=0) * np.linalg.norm(wanted[:, :4], axis=0)
    assert np.all(products > 0.999 * lengths)


def test_only_train_texts_are_read(corpus, encoder):
    texts = np.where(corpus.split == "train", corpus.texts, "nothing of this")
    again = TfidfSVD(30).fit(Corpus(texts.tolist(), split=corpus.split))
    listed, whole = (TfidfSVD(30).fit(list(texts)) for texts in (corpus.train, corpus))
    rows = encoder.encode(corpus.texts)
    # The control: fitted on all texts it is another encoder.
    for other, is_equal in ((again, True), (listed, True), (whole, False)):
        assert np.array_equal(other.encode(corpus.texts), rows) is is_equal


def test_neither_threads_nor_the_batch_change_a_bit():
    import threadpoolctl

    corpus, found = generated("repeats", 1500, rng=1), []
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads):
            encoder = TfidfSVD(150).fit(corpus)
            found.append(encoder(corpus.texts))
    whole, texts = found[0], np.array(corpus.texts)
    assert np.array_equal(*found)
    order = np.random.default_rng(1).permutation(1500)
    for rows in (*([row] for row in range(60)), range(7), range(33), order):
        assert np.array_equal(encoder(texts[rows].tolist()), whole[rows])


def test_texts_without_a_known_word_are_zero_counted_and_reported(encoder):
    with pytest.warns(UserWarning, match="2 of 3 texts have no known word: their vectors are 0"):
        found = encoder.encode(["qqq", "the match", "..."])
    assert np.array_equal(np.any(found, axis=1), [False, True, False])


@pytest.mark.extras
def test_what_is_saved_comes_back_bit_for_bit(corpus, encoder, tmp_path):
    needs("safetensors.numpy")
    encoder.save_pretrained(tmp_path / "new" / "folder")
    files = {path.name for path in (tmp_path / "new" / "folder").iterdir()}
    assert files == {"config.json", "model.safetensors"}
    again = TfidfSVD.from_pretrained(tmp_path / "new" / "folder")
    assert np.array_equal(again.encode(corpus.texts), encoder.encode(corpus.texts))
    assert repr(again) == repr(encoder)
    again.save_pretrained(tmp_path / "second")
    for name in files:
        first = (tmp_path / "new" / "folder" / name).read_bytes()
        assert (tmp_path / "second" / name).read_bytes() == first


@pytest.mark.extras
@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda f: (f / "config.json").unlink(), FileNotFoundError, "with a file config.json"),
        (lambda f: (f / "model.safetensors").unlink(), FileNotFoundError, "file model.safetensors"),
        (lambda f: (f / "config.json").write_text("{"), ValueError, "config.json must be JSON"),
        (lambda f: edit(f, extra=1), ValueError, "of the keys .*'extra'"),
        (lambda f: edit(f, **{"class": "text.DPNR"}), ValueError, "of the class 'text.TfidfSVD'"),
        (lambda f: edit(f, dim=7), ValueError, "arrays of shapes"),
        (lambda f: edit(f, dim="7"), TypeError, "dim must be an integer"),
        (lambda f: edit(f, words=["a"]), ValueError, "arrays of shapes"),
    ],
)
def test_a_folder_that_is_none_is_refused(encoder, tmp_path, change, error, said):
    needs("safetensors.numpy")
    encoder.save_pretrained(tmp_path)
    change(tmp_path)
    with pytest.raises(error, match=said):
        TfidfSVD.from_pretrained(tmp_path)


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_equal_texts_and_one_direction():
    assert np.allclose(np.abs(KNOWN.encode(["aa bb", "bb aa"])), 1.0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: TfidfSVD(2).fit(["a"]), r"needs scikit-learn.*pip install 'dpcore\[text\]'"),
        (lambda: TfidfSVD.from_pretrained("x"), "needs safetensors.*pip install safetensors"),
    ],
)
def test_without_the_package_it_says_what_to_install(call, said, monkeypatch):
    def refuse(module):
        raise ModuleNotFoundError(module, name=module.partition(".")[0])

    monkeypatch.setattr("dpcore.packages.import_module", refuse)
    with pytest.raises(ModuleNotFoundError, match=said):
        call()


KNOWN = TfidfSVD(1).fit(["aa bb"] * 4)
VALUE_ERRORS = [
    (lambda: KNOWN.encode(["aa", ""]), "texts[1]", "a text that is not empty"),
    (lambda: TfidfSVD(0), "dim", "an integer at least 1"),
    (lambda: TfidfSVD(2, seed=-1), "seed", "an integer from 0 to 4294967295"),
    (lambda: TfidfSVD(2).encode(["a"]), "encoder", "fitted before it encodes"),
    (lambda: TfidfSVD(2).save_pretrained("x"), "encoder", "fitted before it is saved"),
    (lambda: TfidfSVD(2).fit([]), "texts", "a list"),
    (lambda: TfidfSVD(5).fit(["aa bb", "aa bb", "aa cc"]), "dim", "at most 2, what the train"),
    (lambda: TfidfSVD(1, min_count=9).fit(["aa bb", "aa bb"]), "min_count", "small enough"),
    (lambda: TfidfSVD(1).fit(["...", "!!"]), "min_count", "small enough"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: KNOWN.encode("aa bb"), "texts", "not a single string"),
    (lambda: TfidfSVD(2.0), "dim", "an integer"),
    (lambda: TfidfSVD(2).fit("a text"), "texts", "not a single string"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
