"""Bad input of `infer`, and what is said of it."""

import sys

import numpy as np
import pytest
from matplotlib.text import Text
from scipy.sparse import csr_array
from shared_inference import Centroids, corpus, looked_up
from shared_messages import check_messages

from dpcore.text import Corpus
from dpcore.text.inference import Attacker, infer
from dpcore.text.inference.attackers import NearestMean

LONG = "any two texts"

SIZES = (40, 20, 20)
HALVES = np.tile([0, 1], 40)
FOUND = corpus(
    SIZES,
    {"male": HALVES, "tall": HALVES[::-1], "age": np.arange(80) % 3, "size": np.arange(80) / 7},
)
VECTORS = np.random.default_rng(1).normal(size=(80, 3))
ENCODE = looked_up(VECTORS)


def called(encode=ENCODE, found=FOUND, attribute="male", attackers=None, **more):
    attackers = Centroids() if attackers is None else attackers
    return infer(encode, found, attribute, attackers=attackers, rng=1, **more)


class Line:
    """The sum of a row, as a number."""

    def fit(self, rows, truth):
        return self

    def predict(self, rows):
        return rows.sum(axis=1)


class Mute:
    """An attacker that does not answer."""

    def fit(self, rows, truth):
        return self


class Rows(Mute):
    def predict(self, rows):
        return np.zeros(3)


class Nothing(Mute):
    def decision_function(self, rows):
        return np.full(len(rows), np.nan)


def fail(texts):
    raise RuntimeError("no model today")


def constant_in(part):
    column = HALVES.copy()
    column[np.repeat([0, 1, 2], SIZES) == part] = 1
    return column


WRONG = [
    ({"found": ["a text"]}, TypeError, "^corpus must be a dpcore.text.Corpus, got 'a list'"),
    ({"attribute": "mael"}, ValueError, "^attribute must be one of 'male', 'tall', 'age', 'size'"),
    ({"attribute": ["male", "male"]}, ValueError, "^attribute must be names that differ"),
    ({"attribute": []}, ValueError, "^attribute must be the name of an attribute, several"),
    ({"attribute": 3}, TypeError, "^attribute must be the name of an attribute, several names"),
    ({"attribute": np.zeros(79)}, ValueError, "^attribute must be .* got '79 values for 80 texts'"),
    ({"attribute": [0.5] * 80}, ValueError, r"^attribute 'attribute' must be of two .* \[0.5\]"),
    ({"attribute": ["no", "yes"] * 40, "kind": "number"}, ValueError, "^kind must be .*strings"),
    ({"kind": "age"}, ValueError, "^kind must be one of 'values', 'number', got 'age'"),
    ({"attribute": "size"}, TypeError, "^estimator must be a regressor, without predict_proba and"),
    ({"attribute": "size", "measure": "auc"}, ValueError, "^measure must be 'correlation' for a"),
    ({"measure": "correlation"}, ValueError, "^measure must be 'correlation' for a number, and"),
    ({"attribute": ["male", "size"]}, ValueError, "^attribute must be of two .*'size"),
    ({"attribute": ["male", "tall"], "kind": "number"}, ValueError, "^attribute must be of two"),
    ({"attribute": [1] * 80}, ValueError, r"^attribute 'attribute' must be of two values at least"),
    ({"attribute": ["male", "age"]}, ValueError, "^attribute must be of two values each .* 'age'"),
    ({"attribute": constant_in(0)}, ValueError, r"in train, got \[1\] in 40 texts$"),
    ({"attribute": constant_in(1)}, ValueError, r"in valid, got \[1\] in 20 texts$"),
    ({"attribute": constant_in(2)}, ValueError, r"in test, got \[1\] in 20 texts$"),
    ({"encode": "model"}, TypeError, r"^encode must be a function list\[str\] -> array"),
    ({"encode": Centroids}, TypeError, "^encode must be a function"),
    ({"encode": lambda texts: VECTORS}, ValueError, r"shape \(40, d\).*, got \(80, 3\)"),
    ({"encode": lambda texts: VECTORS[: len(texts), 0]}, ValueError, r", got \(40,\)"),
    ({"encode": lambda texts: VECTORS[: len(texts), :0]}, ValueError, r", got \(40, 0\)"),
    ({"encode": lambda texts: VECTORS[: len(texts), : len(texts) // 15]}, ValueError, "2 wide as"),
    ({"encode": lambda texts: texts}, TypeError, r"^encode\(texts\) must be an array of shape"),
    ({"encode": lambda texts: csr_array(ENCODE(texts))}, TypeError, r"dense array, which .toarray"),
    ({"encode": fail}, RuntimeError, "^no model today$"),
    ({"encode": lambda texts: 1j * ENCODE(texts)}, TypeError, "^encode.texts. must be an array"),
    ({"encode": lambda texts: ENCODE(texts) / [1, 1, 0]}, ValueError, "40 of 40 rows, .* text 0 "),
    ({"attackers": []}, ValueError, "^attackers must be one at least"),
    ({"attackers": 3}, TypeError, "^attackers must be estimators, or Attacker objects, got 3"),
    ({"attackers": "mlp"}, TypeError, "^estimator must be an estimator with fit, and"),
    ({"attackers": Mute()}, TypeError, "^estimator must be an estimator with fit, and predict_"),
    ({"attackers": Rows()}, ValueError, "^attacker Rows, raw must be one that returns finite scor"),
    ({"attackers": Nothing()}, ValueError, "^attacker Nothing, raw must be one that returns finit"),
    ({"attackers": Nothing(), "attribute": "age"}, TypeError, "^estimator must be one with predic"),
    ({"attackers": Attacker(Centroids(), lambda rows: rows[:3])}, ValueError,
     "^transform must be a function to an array of shape"),
    ({"attackers": Centroids}, TypeError, "^estimator must be an estimator with fit, and"),
    ({"measure": "roc"}, ValueError, "^measure must be one of 'accuracy', 'f1', 'auc', 'balan"),
    ({"vectors": np.zeros((3, 2))}, TypeError, "^encode must be None where vectors are given"),
    ({"neighbours": "texts"}, ValueError, "^neighbours must be one of 'any two texts', 'words'"),
    ({"claim": 1.0}, ValueError, "^claim must be None where nothing can be certified .*not stated"),
    ({"claim": 1.0, "neighbours": "words"}, ValueError, "^claim must be None .*word adjacency"),
    ({"delta": 1.0}, ValueError, "^delta must be"),
    ({"confidence": 95}, ValueError, "^confidence must be"),
    ({"found": Corpus(FOUND.texts, attributes={"male": HALVES})}, ValueError, "^split .* known"),
    ({"found": Corpus(FOUND.texts, split=FOUND.split)}, ValueError, "^attribute .* no attributes"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(("given", "kind", "said"), WRONG, ids=[row[2][:45] for row in WRONG])
def test_bad_input_is_named(given, kind, said):
    with pytest.raises(kind, match=said):
        called(**given)


class Pipeline:
    """What a feature-extraction pipeline returns: lists of shape (1, tokens, width)."""

    task = "feature-extraction"

    def __call__(self, text):
        row = ENCODE([text])[0]
        return [[(row - 0.5 * row).tolist(), (row + 0.5 * row).tolist()]]


def test_wrong_transforms():
    wrong = (lambda: Attacker(Centroids(), "centered")), "transform", "one of 'raw', 'centred'"
    check_messages(ValueError, [wrong])
    wrong = (lambda: Attacker(Centroids(), 3)), "transform", "the name of a transform or a"
    check_messages(TypeError, [wrong])


def test_dictionaries_functions_of_one_text_and_pipelines_are_encoders():
    table = dict(zip(FOUND.texts, VECTORS, strict=True))
    usual = called()
    for encode in (table, lambda text: ENCODE([text])[0].tolist(), Pipeline()):
        found = called(encode=encode)
        assert found.accuracy == usual.accuracy
        assert found.scored.scores == pytest.approx(usual.scored.scores)
    assert called(encode=lambda text, rng: ENCODE([text])[0] + rng.normal(size=3)).seeded
    said = r"^texts must be keys of the encoder, .* of 1 texts, got '39 others, first texts.1.'"
    with pytest.raises(ValueError, match=said):
        called(encode={"t0": VECTORS[0]})


@pytest.mark.parametrize("missing", ["train", "valid", "test"])
def test_a_part_that_is_missing_is_named(missing):
    with pytest.raises(ValueError, match=f"^split must be a split with a '{missing}' part"):
        called(found=FOUND[FOUND.split != missing])


def test_where_no_test_text_is_left_it_says_why():
    texts = [f"t{row}" for row in range(60)] + [f"T{row} " for row in range(20)]
    found = corpus(SIZES, {"male": HALVES}, texts=texts)
    said = r"in test, got \[\] in 0 texts \(20 left out as also in train or valid\)$"
    with pytest.raises(ValueError, match=said):
        called(found=found)


def test_without_scikit_learn_own_attackers_work_and_the_usual_say_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)

    class Missing:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "sklearn":
                raise ModuleNotFoundError(f"No module named {name!r}", name="sklearn")

    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    assert called().sizes == SIZES
    with pytest.raises(ModuleNotFoundError, match=r"needs scikit-learn.*pip install 'dpcore\["):
        infer(ENCODE, FOUND, "male", rng=1)


PLANTED = "Zebulon has the plague"


def mix(texts):
    rows = np.array([[len(text), text.count("1"), 1.0] for text in texts], float)
    return rows - rows.mean(axis=0)


QUOTING = [
    {"encode": mix},
    {"encode": lambda texts: np.full((len(texts), 2), np.nan)},
    {"encode": lambda texts: texts},
    {"encode": lambda texts: [[text] for text in texts]},
    {"encode": lambda texts: np.array(texts)},
    {"encode": lambda texts: [[1.0, 2.0] for _ in texts[1:]]},
    {"encode": {f"{PLANTED} 0": [1.0, 2.0]}},
    {"found": [PLANTED] * 80},
    {"attribute": "plague"},
    {"attribute": constant_in(2)},
    {"vectors": np.full((80, 2), np.inf), "encode": None},
    {"attackers": Attacker(Centroids(), lambda rows: rows[:3])},
]


@pytest.mark.parametrize("given", QUOTING, ids=range(len(QUOTING)))
def test_no_error_of_an_inference_quotes_a_text(given):
    texts = [f"{PLANTED} {row}" for row in range(80)]
    found = corpus(SIZES, {"male": HALVES}, texts=texts)

    def encode(some):
        return VECTORS[[int(text.rpartition(" ")[2]) for text in some]]

    with pytest.raises((TypeError, ValueError)) as caught:
        called(**{"encode": encode, "found": found, **given})
    assert "must be" in str(caught.value)
    assert "Zebulon" not in str(caught.value)


def test_no_part_of_a_result_quotes_a_text():
    texts = [f"{PLANTED} {row}" for row in range(240)]
    # Texts are left out, too.
    texts[200:205] = texts[:5]
    rows = np.arange(240)
    columns = {"male": rows % 2, "many": rows % 4, "size": rows / 7}
    found = corpus((80, 80, 80), columns, texts=texts, labels=rows % 3)

    def encode(some):
        return VECTORS[[int(text.rpartition(" ")[2]) % 80 for text in some]]

    for name, attackers in (("male", Centroids()), ("many", NearestMean()), ("size", Line())):
        told = called(encode, found, name, attackers, neighbours=None if name != "male" else LONG)
        assert told.left_out["test, also in train or valid"] == 5
        shown = [str(told), repr(told), told._repr_html_(), told.to_json(), str(told.lines())]
        shown += [text.get_text() for text in told.plot().findobj(Text)]
        if name == "male":
            shown += [str(told.certified), told.certified.to_json()]
        assert len(shown) > 15
        assert all("Zebulon" not in one for one in shown)
        # The control: the words would be found.
        assert any(name in one for one in shown)
