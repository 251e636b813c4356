"""What `infer` does with a corpus: who is asked what, what is left out, what the record says."""

import dataclasses
import json
import pickle

import numpy as np
import pytest
from shared_extras import needs
from shared_inference import Centroids, Sign, corpus, looked_up, speakers

from dpcore import OutputsAudit
from dpcore.text import inference
from dpcore.text.inference import TRANSFORMS, Attacker, infer, outcomes
from dpcore.text.inference.attackers import NearestMean, encode_each_part


@pytest.fixture(scope="module")
def people():
    found, vectors = speakers()
    return found, looked_up(vectors)


def infer_people(people, attribute="male", encode=None, **more):
    """Infer an attribute of people by distances from means, with the seed 1."""
    given = {"attackers": Centroids(), "rng": 1, **more}
    return infer(encode or people[1], people[0], attribute, **given)


@pytest.fixture(scope="module")
def inferred(people):
    return infer_people(people, measure="accuracy")


def test_a_leak_beats_the_majority_and_not_what_the_label_says_anyway(inferred):
    assert inferred.accuracy.value > 0.75
    assert inferred.accuracy.low < inferred.accuracy.value < inferred.accuracy.high
    assert inferred.f1.low < inferred.f1.value < inferred.f1.high
    names = [floor.name for floor in inferred.floors]
    assert names == ["majority", "majority given the main label"]
    assert inferred.floors[0].accuracy < inferred.floors[1].accuracy
    assert (inferred.floors[0].beaten, inferred.floors[1].beaten) == (True, False)
    assert not inferred.above_floor
    assert inferred.empirical_privacy == 1.0 - inferred.accuracy.value
    assert inferred.empirical_privacy_f1 == 1.0 - inferred.f1.value
    assert len(inferred.tried) == len(TRANSFORMS) - 1
    first, second = dict(inferred.lines())["verdict"].split(" (")
    assert first == "not shown to be above the floor: majority given the main label"
    assert second == "above the majority: the attacker does better than without any vectors)"


def test_scores_show_what_the_label_does_not_say(people):
    # The first coordinate is the attribute with noise, whatever the label: accuracy does not see
    # it, a comparison of texts with equal labels does.
    found = infer_people(people)
    assert found.measure in ("auc", "balanced accuracy", "true-positive rate")
    assert [floor.p_value for floor in found.floors] == [0.0005, 0.0005]
    assert found.above_floor
    # A copy of the label is above the majority, and says no more than the label.
    columns = people[0].labels[:, np.newaxis]
    copied = infer(None, people[0], "male", vectors=columns, attackers=Centroids(), rng=1)
    assert copied.floors[0].beaten
    assert copied.floors_left == ("majority given the main label",)
    assert copied.floors[1].gain.value < 0.0 < copied.floors[0].gain.value


def test_one_attacker_alone_sees_the_test_texts_once():
    asked = []

    class Watched(Centroids):
        def decision_function(self, rows):
            asked.append((tuple(self.columns), len(rows)))
            return super().decision_function(rows)

    found, vectors = speakers(rows=400)
    found = corpus((200, 100, 100), {"male": found.attribute("male")})
    attackers = [Attacker(Watched(column), name=f"column {column}") for column in range(3)]
    result = infer(looked_up(vectors), found, "male", attackers=attackers, rng=1)
    assert asked == [((0,), 100), ((1,), 100), ((2,), 100), ((0,), 100)]
    assert (result.attacker, result.transform) == ("column 0", "raw")
    # What was chosen on is validation's: the figures of test differ.
    best = dict(result.tried)["column 0, raw"]
    assert best == max(value for _, value in result.tried) != result.accuracy.value


def test_texts_that_occur_elsewhere_are_left_out_and_counted():
    rng = np.random.default_rng(2)
    texts = [f"t{row}" for row in range(200)]
    texts[100:110] = texts[:10]
    texts[150:170] = texts[:20]
    texts[170:175] = ["T120", " t120", "t121", "t199", "t199  "]
    # A memory of the training texts would be right on what leaks.
    secret = rng.integers(0, 2, 200)
    secret[150:170], secret[100:110] = secret[:20], secret[:10]
    found = corpus((100, 50, 50), {"secret": secret}, texts=texts)
    seen = []

    def encode(asked):
        seen.append(asked)
        return rng.normal(size=(len(asked), 3))

    result = infer(encode, found, "secret", attackers=Centroids(), rng=1, progress=False)
    assert result.left_out == {
        "valid, also in train": 10,
        "valid, repeated": 0,
        "test, also in train or valid": 23,
        "test, repeated": 2,
    }
    assert result.sizes == (100, 40, 25) == tuple(map(len, seen[:3]))
    # Two equal calls find that the encoder is random; nothing else is compared.
    assert (tuple(map(len, seen[3:])), result.batches.reason) == ((8, 8), "the encoder is random")
    assert not {text.strip().lower() for text in seen[2]} & {t.lower() for t in texts[:150]}
    assert "left out: 10 valid, also in train; 23 test, also in train or valid" in str(result)


def test_an_encoder_with_rng_gets_other_noise_for_each_part_and_the_same_for_a_seed(people):
    drawn = []

    def encode(texts, *, rng=None):
        drawn.append(rng.laplace(size=3).tolist())
        return people[1](texts) + rng.laplace(scale=0.3, size=(len(texts), 6))

    first, second, third = (
        infer_people(people, encode=encode, rng=rng, progress=False) for rng in (5, 5, 6)
    )
    assert drawn[:3] == drawn[3:6] != drawn[6:]
    assert len({tuple(draw) for draw in drawn[:3]}) == 3
    assert first == second != third
    assert infer_people(people, encode=encode, rng=None).seed != first.seed


def test_an_object_with_encode_will_do(people):
    class Encoder:
        claim = 2.0
        delta = 1e-3

        def encode(self, texts, *, rng=None):
            return np.clip(people[1](texts), 0, 1) + rng.laplace(size=(len(texts), 6))

    result = infer_people(people, encode=Encoder(), neighbours="any two texts")
    assert isinstance(result.certified, OutputsAudit)
    # Without its delta a claim of (epsilon, delta) would be tested as another.
    assert (result.certified.claim, result.certified.delta) == (2.0, 1e-3)
    assert infer_people(people, encode=Encoder().encode, neighbours="any two texts") == result
    assert result.seeded
    own = infer_people(people, encode=Encoder(), neighbours="any two texts", claim=1.0)
    assert (own.certified.claim, own.certified.delta) == (1.0, 0.0)


def test_of_an_attribute_of_three_values_nothing_is_certified(people):
    from sklearn.neighbors import KNeighborsClassifier

    names = np.array(["a", "b", "c"])[people[0].labels]
    nearest = KNeighborsClassifier(9)
    result = infer_people(people, names, attackers=nearest, neighbours="any two texts")
    assert (result.values, result.threshold) == ((("a", "b", "c"),), None)
    assert result.certified == "not applicable: not binary"
    assert "macro over 3 values" in str(result)
    assert [group.value for group in result.groups] == ["a", "b", "c"]


def test_several_attributes_are_judged_together_and_one_by_one(people):
    result = infer_people(people, ["male", "tall"])
    assert (result.measure, result.certified) == ("f1", "not applicable: several attributes")
    assert [one.name for one in result.each] == ["male", "tall"]
    mean = np.mean([one.accuracy.value for one in result.each])
    assert result.accuracy.value == pytest.approx(mean)
    assert result.accuracy.how.startswith("bootstrap")
    assert all(one.accuracy.how == "Clopper-Pearson" for one in result.each)
    assert [(group.attribute, group.value) for group in result.groups] == [("male", 1), ("tall", 1)]
    assert "micro over all attributes" in str(result)


@pytest.mark.parametrize(
    ("neighbours", "said"),
    [("words", "not applicable: word adjacency"), (None, "not applicable: neighbours not stated")],
)
def test_where_neighbours_are_not_any_two_texts_nothing_is_certified(people, neighbours, said):
    result = infer_people(people, neighbours=neighbours)
    assert result.certified.startswith(said)
    assert said in str(result)


def test_few_test_texts_certify_nothing():
    found, vectors = speakers(rows=100)
    result = infer_people((found, looked_up(vectors)), "tall", neighbours="any two texts")
    assert result.certified == "not applicable: fewer than 20 test texts of one value"


def test_groups_have_the_accuracy_of_the_main_label_and_its_gap(inferred, people):
    first, second = inferred.groups
    assert (first.value, second.value, first.texts + second.texts) == (0, 1, inferred.sizes[2])
    weights = np.array([first.texts, second.texts]) / inferred.sizes[2]
    shares = [first.attack.value, second.attack.value]
    assert weights @ shares == pytest.approx(inferred.accuracy.value)
    assert first.gap.value == pytest.approx(first.main.value - second.main.value)
    assert first.gap.low == pytest.approx(-second.gap.high)
    assert first.gap.low < first.gap.value < first.gap.high
    unlabelled = corpus((700, 300, 500), {"male": people[0].attribute("male")})
    result = infer_people((unlabelled, people[1]))
    assert all(group.main is None and group.gap is None for group in result.groups)
    assert len(result.floors) == 1


def test_the_record_says_what_was_done_and_every_report_method_works(inferred, people):
    text = str(inferred)
    for words in (
        "best of 6 on validation by accuracy, evaluated once on test",
        "(Clopper-Pearson)", "(bootstrap of 2,000; of male = 1)", "sign test",
        "no guarantee", "750 train, 375 valid, 375 test; left out: none",
        "seed         1 (the encoder has no rng=, so that noise of its own is not repeated)",
        "95 % each by itself"
    ):  # fmt: skip
        assert words in text
    assert inferred.lines()[-1][0] == "time"
    assert repr(inferred).startswith("<Inference of male: accuracy 0.")
    assert "\n" not in repr(inferred)
    assert pickle.loads(pickle.dumps(inferred)) == inferred
    plain = json.loads(inferred.to_json(), parse_constant=pytest.fail)
    assert plain == json.loads(json.dumps(inferred.to_dict()))
    assert (plain["format"], plain["seed"]) == ("dpcore.text.inference/4", "1")
    assert plain["outcome"]["accuracy"]["how"] == "Clopper-Pearson"
    assert plain["derived"]["above_floor"] is inferred.above_floor
    certified = infer_people(people, attackers=Sign(), neighbours="any two texts")
    assert certified.to_dict()["certified"]["format"] == "dpcore.audit_outputs/2"
    assert "the attacker's score" in str(certified)
    assert pickle.loads(pickle.dumps(certified)) == certified


def test_a_file_of_another_layout_is_refused(inferred):
    record = {**inferred.to_dict(), "format": "dpcore.text.inference/3"}
    message = "format must be 'dpcore.text.inference/4', got 'dpcore.text.inference/3'"
    with pytest.raises(ValueError, match=message):
        inference.Inference.from_dict(record)
    assert inference.Inference.from_dict(inferred.to_dict()) == inferred


OUTCOMES = [
    ("male", outcomes.TwoValues, {"threshold", "figures"}),
    (["male", "tall"], outcomes.SeveralAttributes, {"threshold", "each"}),
    ("topic", outcomes.ManyValues, {"ranking"}),
]


@pytest.mark.parametrize(("attribute", "kind", "names"), OUTCOMES)
def test_an_outcome_has_the_figures_of_its_kind(people, attribute, kind, names):
    attributes = {**dict(people[0].attributes), "topic": people[0].labels}
    texts = dataclasses.replace(people[0], attributes=attributes)
    result = infer_people((texts, people[1]), attribute, attackers=Attacker(NearestMean()))
    optional = ("threshold", "figures", "each", "ranking", "number")
    assert type(result.outcome) is kind
    assert {name for name in optional if getattr(result, name) not in (None, ())} == names
    assert all(getattr(result, name) == getattr(result.outcome, name) for name in names)
    assert (result.accuracy, result.f1) == (result.outcome.accuracy, result.outcome.f1)


def test_html_escapes_names_and_pictures_name_every_line(people):
    odd = corpus((700, 300, 500), {"<b> & $x$": people[0].attribute("male")})
    result = infer_people((odd, people[1]), "<b> & $x$")
    assert "<b> &" not in result._repr_html_()
    labels = [tick.get_text() for tick in result.plot().axes[0].get_yticklabels()]
    assert labels == ["accuracy", "F1", "AUC"]
    several = infer_people(people, ["male", "tall"]).plot()
    assert len(several.axes[0].get_yticklabels()) == 4
    names = [text.get_text() for text in several.axes[0].get_legend().get_texts()]
    assert names == ["attacker", "majority", "majority given the main label"]


def test_the_usual_attackers_read_rows_calls_and_summaries(people):
    attackers = inference.usual(11_657)
    assert (len(attackers), {attacker.behind for attacker in attackers}) == (
        14,
        set(TRANSFORMS),
    )
    names = [attacker.classifier for attacker in attackers]
    network = attackers[names.index("network of 256")].estimator.steps[-1][1]
    assert (network.hidden_layer_sizes, network.max_iter) == ((256,), 11)
    small, vectors = speakers(rows=120)
    result = infer(looked_up(vectors), small, ["male", "tall"], rng=1)
    assert len(result.tried) == 14
    assert result == infer(looked_up(vectors), small, ["male", "tall"], rng=1)


def test_a_certified_part_with_doubts_bounds_nothing(people):
    found = infer_people(people, neighbours="any two texts", claim=4.0)
    doubtful = dataclasses.replace(found.certified, doubts=("rows repeat",))
    assert "epsilon >= " in str(found)
    report = str(dataclasses.replace(found, certified=doubtful))
    assert "nothing: rows repeat" in report
    assert "epsilon >= " not in report


@pytest.mark.extras
def test_encoders_may_return_lists_tensors_and_small_dtypes():
    texts = ("a", "bb")
    [found] = encode_each_part(lambda asked: [[len(text), 1] for text in asked], [texts], 1)
    assert (found.tolist(), found.dtype) == ([[1.0, 1.0], [2.0, 1.0]], np.float64)
    torch = needs("torch")
    vectors = torch.ones((2, 3), dtype=torch.bfloat16, requires_grad=True)
    [found] = encode_each_part(lambda asked: vectors, [texts], 1)
    assert found.tolist() == [[1.0] * 3] * 2


@pytest.mark.extras
def test_a_private_encoder_brings_its_claim_and_its_delta(people):
    needs("torch")
    from dpcore.torch import Clip, PrivateEncoder

    def encode(texts):
        # A private encoder asks for the width with a text of its own.
        return people[1]([text if text[1:].isdigit() else "t0" for text in texts])

    told = {"attackers": Centroids(), "neighbours": "any two texts", "rng": 1}
    for epsilon, noise, delta in ((4.0, "laplace", 0.0), (8.0, "gaussian", 1e-5)):
        settings = {"epsilon": epsilon, "noise": noise, "delta": delta}
        private = PrivateEncoder(encode, Clip("l1", 1.0), **settings)
        result = infer(private, people[0], "male", **told)
        assert (result.certified.claim, result.certified.delta) == (epsilon, delta)
        assert (result.seeded, result.certified.refuted is not True) == (True, True)
        assert result == infer(private, people[0], "male", **told)


def test_an_encoder_in_which_texts_mix_is_refused():
    found = corpus((40, 20, 20), {"long": np.arange(80) % 2})

    def plain(texts):
        return np.array([[len(text), text.count("1"), 1.0] for text in texts], float)

    def centred(texts):
        return plain(texts) - plain(texts).mean(axis=0)

    with pytest.raises(ValueError, match="encode must be one that gives a text the same vector"):
        infer_people((found, centred), "long")
    result = infer_people((found, plain), "long")
    assert result.batches.distance == 0.0
    assert "8 texts alone, in two batches of other texts and in another order agree" in str(result)
    assert infer_people((found, centred), "long", rounding=2.0).batches.rounding == 2.0


class Clock:
    """Seconds that encoders and attackers add to, in place of `time.perf_counter`."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("time.perf_counter", lambda: self.now)

    def slow_encoder(self, encode, each=0.0, call=0.0, first=0.0):
        """Take `each` seconds for a text, `call` for a call, and `first` for the first one more."""
        waits = [first]

        def encode_slowly(texts):
            self.now += call + each * len(texts) + (waits.pop() if waits else 0.0)
            return encode(texts)

        return encode_slowly

    def slow_attacker(self, seconds):
        """Take so long to be fitted."""
        clock = self

        class Slow(Centroids):
            def fit(self, rows, truth):
                clock.now += seconds
                return super().fit(rows, truth)

        return Attacker(Slow())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"each": 1.0}, "dpcore: 1,500 texts to encode take about 25 min\n"),
        ({"each": 0.019}, ""),
        # Neither a start nor the cost of a call is that of its texts.
        ({"each": 0.01, "first": 20.0}, ""),
        ({"each": 0.01, "call": 1.0}, ""),
    ],
)
def test_slow_encoding_is_forecast(people, capsys, monkeypatch, given, said):
    encode = Clock(monkeypatch).slow_encoder(people[1], **given)
    found = infer_people(people, encode=encode)
    assert capsys.readouterr().err == said
    # A forecast changes no figure.
    assert found == infer_people(people, encode=encode, progress=False)
    assert not capsys.readouterr().err


def test_a_forecast_leaves_generators_as_they_were(people, monkeypatch):
    clock = Clock(monkeypatch)

    def encode(texts):
        rows = people[1](texts)
        # The last bits alone are random: the encoder's check takes them for rounding.
        return rows * (1.0 + 1e-7 * np.random.random(rows.shape))  # noqa: NPY002

    states = []
    for progress in (None, False):
        np.random.seed(5)  # noqa: NPY002
        infer_people(people, encode=clock.slow_encoder(encode, each=1.0), progress=progress)
        states.append(np.random.random())  # noqa: NPY002
    assert states[0] == states[1]


def test_slow_attackers_are_forecast_once(people, capsys, monkeypatch):
    clock = Clock(monkeypatch)
    fast, slow = clock.slow_attacker(1.0), clock.slow_attacker(20.0)
    for tried, said in (
        ([fast] * 9, ""),
        ([fast, slow, *[fast] * 4], "dpcore: attackers that are left (4) take about 42 s\n"),
        ([slow] * 6, "dpcore: attackers that are left (5) take about 1.7 min\n"),
    ):
        infer(people[1], people[0], "male", attackers=tried, rng=1)
        assert capsys.readouterr().err == said
        infer(people[1], people[0], "male", attackers=tried, rng=1, progress=False)
        assert not capsys.readouterr().err


def test_no_forecast_is_made_of_an_encoder_that_fails_on_few_texts(people, capsys):
    def encode(texts):
        if len(texts) < 100:
            raise ValueError("too few")
        return people[1](texts)

    with pytest.raises(ValueError, match=r"^too few$"):
        infer_people(people, encode=encode)
    assert not capsys.readouterr().err
