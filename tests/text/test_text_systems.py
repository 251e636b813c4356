"""The contract of every text system, found by its class: defaults, folder, words, page, script."""

import inspect
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from shared_extras import needs

torch = needs("torch", "safetensors")

import dpcore  # noqa: E402
from dpcore import text  # noqa: E402
from dpcore.text import generated  # noqa: E402
from dpcore.text.systems import TextSystem  # noqa: E402

ROOT = Path(__file__).parent.parent.parent
CORPUS = generated("topics", 200, rng=1)
TEXTS = list(CORPUS.test.texts)
SIZES = {"epsilon": 5.0, "attribute": "parent", "dim": 4, "hidden": 4, "embedding": 4}
"""Arguments of small models; each system is given those that it takes."""


def subclasses(cls):
    """Every class below a class."""
    return [cls, *(found for child in cls.__subclasses__() for found in subclasses(child))]


PACKAGE = "dpcore.text.systems."
SYSTEMS = [cls for cls in subclasses(TextSystem)[1:] if cls.__module__.startswith(PACKAGE)]
every = pytest.mark.parametrize("cls", SYSTEMS, ids=lambda cls: cls.__name__)


def make(cls, **more):
    """A small model that is not fitted."""
    taken, given = inspect.signature(cls).parameters, SIZES | more
    return cls(**{name: value for name, value in given.items() if name in taken})


def fit(cls, epochs=1, **more):
    return make(cls, **more).fit(CORPUS, epochs=epochs, pair=False, rng=1, progress=False)


def is_imported(cls, places):
    """Return True if a page or a script imports the class from `dpcore.text`."""
    found = re.compile(rf"from dpcore\.text import [^\n]*\b{cls.__name__}\b")
    return any(found.search(place.read_text("utf-8")) for place in places)


def missing_parts(cls, folder):
    """Name what a system lacks of page, script, JSON word and `save_pretrained`."""
    found = []
    if not is_imported(cls, (ROOT / "docs" / "howto").glob("*.md")):
        found.append("a page in docs/howto")
    if not is_imported(cls, (ROOT / "examples").rglob("plot_*.py")):
        found.append("a script in examples")
    model, pair = fit(cls), (TEXTS[0], TEXTS[1])
    report = dpcore.audit(model, pair, trials=1000, rng=1, progress=False)
    words = json.loads(report.to_json())["mechanism"]["repr"]
    if not words.startswith(f"{cls.__name__}(") or getattr(text, cls.__name__, None) is not cls:
        found.append("a word in JSON that is its name in dpcore.text")
    try:
        place = model.save_pretrained(folder)
        again = cls.from_pretrained(place)
    except NotImplementedError:
        return [*found, "save_pretrained"]
    config = json.loads((place / "config.json").read_text("utf-8"))
    # Folders keep the word that they had before the class was renamed.
    assert config["format"] == f"dpcore.text.{cls.__name__.removesuffix('Model')}/1"
    assert np.array_equal(again.encode(TEXTS, rng=2), model.encode(TEXTS, rng=2))
    assert (repr(again), str(again)) == (repr(model), str(model).replace(*counted(model)))
    return found


def counted(model):
    """The line of `print` on the texts that were encoded, which a folder does not keep."""
    lines = [line for line in str(model).splitlines() if line.startswith("  texts  ")]
    return lines[0], lines[0].replace(f"{model.private.counted['texts']}", f"{len(TEXTS)}")


@every
def test_no_system_lacks_page_script_word_or_folder(cls, tmp_path):
    assert missing_parts(cls, tmp_path) == []


def test_what_a_system_lacks_is_named(tmp_path):
    class Bare(TextSystem):
        """A system without anything but an encoder."""

        def __init__(self, epsilon):
            self.epsilon = epsilon

        def fit(self, corpus, **given):
            model = fit(text.DPNR)
            self.private, self.trained = model.private, model.trained
            return self

    word = "a word in JSON that is its name in dpcore.text"
    lacking = ["a page in docs/howto", "a script in examples", word, "save_pretrained"]
    assert missing_parts(Bare, tmp_path) == lacking


@pytest.fixture(scope="module", params=SYSTEMS, ids=lambda cls: cls.__name__)
def saved(request, tmp_path_factory):
    """A class of systems, and the folder of a fitted one."""
    return request.param, fit(request.param).save_pretrained(tmp_path_factory.mktemp("model"))


CHANGES = [
    (lambda c: {**c, "format": c["format"].replace("/1", "/2")}, "format"),
    (lambda c: {**c, "format": "dpcore.text.Other/1"}, "format"),
    (lambda c: {**c, "more": 1}, "more"),
    (lambda c: {name: value for name, value in c.items() if name != "words"}, "got 'words'"),
    (lambda c: {**c, "arguments": {**c["arguments"], "more": 1}}, "arguments in config.json"),
    (lambda c: {**c, "arguments": c["arguments"] | dict.fromkeys({"dim", "hidden"} & {
        *c["arguments"]}, 8)}, "weights of shapes"),
    (lambda c: {**c, "trained": {}}, "trained in config.json"),
    (lambda c: {**c, "trained": {**c["trained"], "more": 1}}, "trained in config.json"),
    (lambda c: {**c, "words": [*c["words"], "another"]}, "weights of shapes"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), CHANGES)
def test_folders_of_others_are_refused(saved, tmp_path, change, said):
    cls, folder = saved
    place = shutil.copytree(folder, tmp_path / "changed")
    file = place / "config.json"
    file.write_text(json.dumps(change(json.loads(file.read_text("utf-8")))), "utf-8")
    with pytest.raises(ValueError, match=said):
        cls.from_pretrained(place)


def test_missing_folders_and_weights_are_named(saved, tmp_path):
    cls, folder = saved
    with pytest.raises(FileNotFoundError):
        cls.from_pretrained(tmp_path / "nowhere")
    shutil.copy(folder / "config.json", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"must hold model\.safetensors"):
        cls.from_pretrained(tmp_path)


@every
def test_the_defaults_hold(cls):
    model = fit(cls)
    assert model.claim == 5.0
    rows = [model.encode(TEXTS, rng=seed) for seed in (1, 1, 2, None, None)]
    assert (rows[0].shape, rows[0].dtype) == ((len(TEXTS), model.private.width), np.float32)
    # A seed repeats the noise, and nothing else does.
    assert len({one.tobytes() for one in rows}) == 4
    assert np.array_equal(rows[0], rows[1])
    pair = model.worst_pair(TEXTS)
    assert {pair.x, pair.x_prime} <= set(TEXTS)
    assert model.worst[0] == pair
    mechanism = model.as_mechanism()
    assert (repr(mechanism), mechanism.claim) == (model.name, 5.0)
    if hasattr(model, "rewrite"):
        assert model.rewriter.claim == 5.0
    assert model.to("cpu") is model
    assert "last loss" in str(model)


@every
@pytest.mark.parametrize(
    "use", ["encode", "clean", "worst_pair", "as_mechanism", "save_pretrained", "to"]
)
def test_nothing_works_before_fit(cls, use, tmp_path):
    model = make(cls)
    given = {"as_mechanism": (), "save_pretrained": (tmp_path,), "to": ("cpu",)}
    with pytest.raises(ValueError, match=r"^model must be fitted before it .*: model\.fit"):
        getattr(model, use)(*given.get(use, (TEXTS,)))
    assert "not yet: model.fit(corpus)" in str(model)
    assert (model.worst, list(tmp_path.iterdir())) == (None, [])


@every
def test_ctrl_c_keeps_the_last_whole_epoch(cls, monkeypatch):
    loss, calls = torch.nn.functional.cross_entropy, []

    def train(end, epochs=4):
        def interrupted(*args, **given):
            calls.append(1)
            if len(calls) == end:
                raise KeyboardInterrupt
            return loss(*args, **given)

        calls.clear()
        monkeypatch.setattr(torch.nn.functional, "cross_entropy", interrupted)
        return fit(cls, epochs, learn=True)

    def weights(model):
        parts = sorted(model.saved_modules.items())
        return [weight for _, part in parts for weight in part.parameters()]

    whole = train(0, epochs=1)
    each = len(calls)
    early, late, other = (train(end) for end in (2 * each + 2, 3 * each - 1, 3 * each + 2))
    assert (early.trained.partial, len(early.trained.losses)) == (True, 2)
    assert "INTERRUPTED after 2" in str(early)
    # What is learnt is what it was in between, whenever the third epoch was ended.
    assert (early.trained, repr(early)) == (late.trained, repr(late))
    assert all(map(torch.equal, weights(early), weights(late)))
    assert not all(map(torch.equal, weights(early), weights(other)))
    assert (len(early.encode(TEXTS)), whole.trained.partial) == (len(TEXTS), False)
    model = make(cls)
    calls.clear()
    monkeypatch.setattr(torch.nn.functional, "cross_entropy", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(CORPUS, epochs=2, rng=1)
    with pytest.raises(ValueError, match="model must be fitted"):
        model.encode(TEXTS)


def stop(*_, **__):
    raise KeyboardInterrupt
