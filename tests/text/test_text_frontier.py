"""The frontier: utility, attack and exact loss of private vectors, by epsilon and dimensions."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from shared_extras import needs
from shared_messages import check_messages

from dpcore import progress
from dpcore.text import Corpus, FrontierCell, frontier, frontiers, studies

LogisticRegression = needs("sklearn.linear_model", "torch").LogisticRegression

TOPICS, WIDTH, SECRET = 3, 12, "the patient's name is Ermintrude"
"""Three clusters in two of twelve columns; a sentence that no result may show."""


def made(seed: int = 1):
    """A table of vectors, a corpus of its texts, and public rows of the same kind."""
    draw = np.random.default_rng(seed)
    topics, ill = draw.integers(0, TOPICS, 900), draw.integers(0, 2, 900)
    rows = 0.1 * draw.normal(size=(900, WIDTH))
    rows[:, :2] += np.array([[0.0, 1.0], [0.9, -0.5], [-0.9, -0.5]])[topics]
    rows[:, 2] += 0.6 * ill
    texts = [SECRET, *(f"text {i}" for i in range(1, 900))]
    split = np.repeat(["train", "valid", "test"], [250, 100, 250])
    corpus = Corpus(texts[:600], labels=topics[:600], attributes={"ill": ill[:600]}, split=split)
    return dict(zip(texts, rows, strict=True)), corpus, rows[600:].astype(np.float32)


TABLE, CORPUS, PUBLIC = made()


def measured(**changed):
    given = {
        "epsilons": [0.01, 100.0], "dims": [2, 3], "public": PUBLIC, "attribute": "ill", "rng": 3,
        "attackers": LogisticRegression(), **changed,
    }  # fmt: skip
    return frontier(TABLE, CORPUS, **given)


@pytest.fixture(scope="module")
def found():
    return measured()


def test_utility_and_attack_grow_with_epsilon_and_the_attribute_needs_its_direction(found):
    # Intervals of 99.99 %: with 250 texts they are .12 wide at most on either side.
    assert (found.dims, found.sizes) == ((2, 3), (250, 100, 250))
    for dim in found.dims:
        low, high, clean = found.of(dim)
        assert not low.utility.above_floor
        assert high.utility.accuracy.value > 0.9
        assert clean.utility.accuracy.value > 0.95
        assert (low.signal, clean.signal) == (pytest.approx(0.0, abs=1e-3), 1.0)
        assert low.signal < high.signal < 1.0
    # The third direction of the public rows is the attribute's.
    assert found[100.0, 3].attack_score.value > 0.9
    assert (found[100.0, 2].attack.above_floor, found[100.0, 3].attack.above_floor) == (False, True)
    assert not found[0.01, 3].attack.above_floor


def test_the_loss_is_that_of_the_farthest_texts_and_above_what_is_certified(found):
    from dpcore.torch import Clip, Project

    torch = needs("torch")
    for dim in found.dims:
        project = Project(PUBLIC, dim)
        public = project(torch.from_numpy(PUBLIC))
        lengths = (public - public.mean(dim=0)).norm(dim=1).numpy()
        radius = float(np.quantile(lengths, frontiers.RADIUS_QUANTILE))
        rows = torch.tensor(np.array([TABLE[text] for text in CORPUS.texts], np.float32))
        rows = Clip("l2", radius, center=public.numpy())(project(rows)).double()
        widest = float(torch.cdist(rows, rows).max())
        for cell in found.of(dim)[:-1]:
            assert cell.radius == radius
            noise = (2.0 * radius / cell.epsilon) ** 2 * (dim + 1)
            energy = float(rows.square().mean())
            assert cell.signal == pytest.approx(energy / (energy + noise), 1e-5)
            assert cell.noise.startswith("L2LaplaceNoise")
            assert cell.worst_loss == pytest.approx(cell.epsilon * widest / (2.0 * radius), 1e-6)
            assert cell.worst_loss <= cell.epsilon * (1.0 + 1e-6)
            assert 0.0 <= cell.certified <= cell.worst_loss
        assert found.of(dim)[-1].worst_loss == math.inf
    assert found[100.0, 3].certified > 0.5


def test_the_likelihood_over_clean_training_vectors_is_an_attacker_where_there_is_noise(found):
    settings = {"dims": [2], "epsilons": [20.0]}
    for attackers, count in ((None, None), ([LogisticRegression(), "likelihood"], 7)):
        report = measured(attackers=attackers, **settings)
        names = [[name for name, _ in report[epsilon, 2].attack.tried] for epsilon in (20, np.inf)]
        assert [any("likelihood" in name for name in tried) for tried in names] == [True, False]
        assert count is None or len(names[0]) == count
    assert not any("likelihood" in name for name, _ in found[100.0, 3].attack.tried)


def test_a_seed_repeats_it_and_delta_allows_gaussian_noise():
    given = {"dims": [2], "epsilons": [5.0], "attribute": None, "delta": 1e-5, "noise": "gaussian"}
    first, again, other = (measured(**given, rng=seed) for seed in (1, 1, 2))
    assert first == again != other
    cell = first[5.0, 2]
    assert cell.noise.startswith("GaussianNoise")
    assert cell.worst_loss <= 5.0 + 1e-6
    assert (cell.attack, cell.attack_score) == (None, None)
    assert math.isnan(cell.certified)


def test_random_directions_and_all_columns_keep_less_and_more():
    principal, random = (
        measured(dims=[2, None], epsilons=[100.0], attribute=None, directions=kind)
        for kind in ("principal", "random")
    )
    assert principal.dims == (2, WIDTH)
    best, other = (one[math.inf, 2].utility.accuracy.value for one in (principal, random))
    assert other < best > 0.95
    # Without a projection there are no directions to choose.
    assert random[math.inf, WIDTH] == principal[math.inf, WIDTH]
    # Noise of the same claim is larger in more dimensions.
    signals = [principal[100.0, dim].signal for dim in (2, WIDTH)]
    assert signals[0] > signals[1]


@pytest.mark.parametrize("directions", ["principal", "random"])
def test_a_shift_of_all_vectors_changes_nothing(directions):
    """What all texts share is no signal: the ball lies around the mean of the public rows."""
    given = {"epsilons": [5.0], "attribute": None, "directions": directions, "dims": [2, None]}
    moved = {text: row + 8.0 for text, row in TABLE.items()}
    first = measured(**given)
    other = frontier(moved, CORPUS, **given, public=PUBLIC + 8.0, rng=3)
    for one, two in zip(first.cells, other.cells, strict=True):
        figures = [(cell.radius, cell.signal, cell.worst_loss) for cell in (one, two)]
        assert figures[1] == pytest.approx(figures[0], 1e-3)


def test_no_text_of_the_corpus_is_in_any_output(found, tmp_path):
    page = found.to_html(tmp_path / "frontier.html")
    assert (tmp_path / "frontier.html").read_text(encoding="utf-8") == page
    data = json.dumps(found.to_dict(), allow_nan=False)
    shown = [str(found), repr(found), page, data, found._repr_html_(), *map(repr, found.cells)]
    for text in shown:
        assert "Ermintrude" not in text
        assert "text 5" not in text
    assert (json.loads(data)["cells"][0]["worst_loss"], len(found.plot().axes)) == ("inf", 3)
    assert len(measured(attribute=None, dims=[2], epsilons=[1.0]).plot().axes) == 2


def test_texts_may_be_public_and_a_column_may_be_the_label():
    public = [f"text {row}" for row in range(600, 900)]
    rows = np.array([TABLE[text] for text in public], np.float32)
    given = {"dims": [2], "epsilons": [50.0], "attribute": None}
    assert measured(**given, public=public) == measured(**given, public=rows)
    by_column = measured(**given, label="ill")
    assert by_column.floor < 0.7
    assert isinstance(by_column[50.0, 2], FrontierCell)


@pytest.mark.parametrize(("kind", "name"), [("age", "correlation"), ("town", "accuracy")])
def test_a_number_and_an_attribute_of_many_values_are_inferred(kind, name):
    ages = np.array([TABLE[text][2] for text in CORPUS.texts])
    columns = {"age": 40.0 + 30.0 * ages, "town": np.digitize(ages, [0.0, 0.6])}
    corpus = replace(CORPUS, attributes=columns)
    given = {"epsilons": [1000.0], "dims": [3], "public": PUBLIC, "rng": 1}
    found = frontier(TABLE, corpus, **given, attribute=kind)
    assert found[1000.0, 3].attack_score.value > 0.8
    assert math.isnan(found[1000.0, 3].certified)
    assert f"attack: {name} of" in str(found)
    assert found.plot().axes[1].get_ylabel() == name


def test_an_interrupted_frontier_has_what_was_measured(monkeypatch):
    calls, infer = [], studies.infer

    def infer_then_stop(*given, **named):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return infer(*given, **named)

    monkeypatch.setattr(studies, "infer", infer_then_stop)
    part = measured(dims=[2], attribute=None)
    assert (part.partial, [cell.epsilon for cell in part.cells]) == (True, [math.inf, 0.01])
    assert "INTERRUPTED after 2 cells" in str(part)
    calls[:] = [1, 1]
    with pytest.raises(KeyboardInterrupt):
        measured(dims=[2], attribute=None)


def test_long_encoding_is_forecast(capsys, monkeypatch):
    given = {"dims": [2], "epsilons": [1.0], "attribute": None}
    measured(**given)
    assert "to encode" not in capsys.readouterr().err
    monkeypatch.setattr(progress, "LONG_SECONDS", 0.0)
    measured(**given)
    assert "dpcore: 600 texts to encode take about" in capsys.readouterr().err
    measured(**given, progress=False)
    assert not capsys.readouterr().err


def mix(texts):
    rows = np.array([[len(text), text.count("e")] for text in texts], float)
    return rows - rows.mean(axis=0)


def draw(texts):
    return np.random.default_rng().normal(size=(len(texts), 2))


def measure_wrongly(corpus=CORPUS, encoder=TABLE, **changed):
    given = {"epsilons": [1.0], "dims": [1], "public": PUBLIC, "attribute": "ill", **changed}
    return lambda: frontier(encoder, corpus, **given)


VALUE_ERRORS = [
    (measure_wrongly(epsilons=[8.0, 1.0]), "epsilons", "ascending"),
    (measure_wrongly(epsilons=[]), "epsilons", "one at least"),
    (measure_wrongly(epsilons=[0.0]), "epsilons[0]", "above 0"),
    (measure_wrongly(dims=[3, 2]), "dims", "ascending"),
    (measure_wrongly(dims=[0]), "dims[0]", "at least 1"),
    (measure_wrongly(dims=[2, 13]), "dims", "width"),
    (measure_wrongly(dims=[4], public=PUBLIC[:3]), "dims", "at most 3"),
    (measure_wrongly(public=PUBLIC[:, :5]), "public", "(n, 12)"),
    (measure_wrongly(public=PUBLIC * np.nan), "public", "finite"),
    (measure_wrongly(public=["TEXT  5"]), "public", "without texts of the corpus"),
    (measure_wrongly(public=[]), "public", "at least one"),
    (measure_wrongly(attackers="likelihood"), "attackers", "no 'likelihood' without noise"),
    (measure_wrongly(noise="gaussian"), "delta", "above 0"),
    (measure_wrongly(noise="laplace", delta=1e-5), "delta", "0 for laplace"),
    (measure_wrongly(confidence=2.0), "confidence", "2.0"),
    (measure_wrongly(rng=-1), "rng", "-1"),
    (measure_wrongly(attribute="age"), "attribute", "'ill'"),
    (measure_wrongly(label="age"), "label", "of the corpus (it has 'ill')"),
    (measure_wrongly(label="ill"), "attribute", "another one than label"),
    (measure_wrongly(directions="best"), "directions", "'principal'"),
    (measure_wrongly(noise="cauchy"), "noise", "'cauchy'"),
    (measure_wrongly(delta=1.0), "delta", "1.0"),
    (measure_wrongly(Corpus(CORPUS.texts, split=CORPUS.split)), "corpus", "labels"),
    (measure_wrongly(CORPUS[:300]), "", "test"),
    (measure_wrongly(encoder=mix, public=["a text", "another"]), "", "alone and in any batch"),
    (measure_wrongly(encoder=draw, public=["a text", "another"]), "", "the same in two equal call"),
]
TYPE_ERRORS = [
    (measure_wrongly(epsilons=8.0), "epsilons", "list"),
    (measure_wrongly(dims=[True]), "dims[0]", "True"),
    (measure_wrongly(public=[object()]), "public", "vectors"),
    (measure_wrongly(public=3.0), "public", "list of texts"),
    (measure_wrongly(public="a text"), "public", "list of texts"),
    (measure_wrongly(epsilons=["8"]), "epsilons[0]", "8"),
    (measure_wrongly(noise=3), "noise", "'best'"),
    (measure_wrongly(label=3), "label", ""),
    (measure_wrongly(attribute=["ill"]), "attribute", ""),
    (measure_wrongly(["a"]), "corpus", "Corpus"),
]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
