"""A native noise: what it touches, and that a new one works throughout the package."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import shared_natives
from shared_natives import ALL, copied, forgotten, run

import dpcore
from dpcore import mechanisms
from dpcore.mechanisms.native import Law, law_of, log_votes

LAWS = {
    "nothing": "Law()",
    "votes": "Law(log_votes=_laplace_log_votes)",
    "one end": "Law(support=lambda noise: (0.5, __import__('math').inf))",
    "other end": "Law(support=lambda noise: (-__import__('math').inf, 0.0))",
    "cost": "Law(cost=lambda noise, apart: over_scale(apart, noise.scale, 'l1'))",
    "blind": "Law(blind=True)",
    "all": ALL,
}

USES = """
import json, pathlib, pickle, sys
import dpcore
from dpcore import calibration, exact, structure
from dpcore.attacks import MajorityVote
from dpcore.sensitivity import Ball

folder = pathlib.Path(sys.argv[1])
toy, pair = dpcore.Toy(1.0), dpcore.Pair([0.0, 0.0, 0.0], [1.0, 1.0, 1.0])
found = {}
audit = dpcore.audit(toy, pair, attack=MajorityVote(), claim=9.0, trials=20000, rng=1)
text = audit.to_json()
(folder / "vote.json").write_text(text, encoding="utf-8")
assert dpcore.Audit.from_json(text) == audit
assert pickle.loads(pickle.dumps(audit)) == audit
found["text"], found["exact"] = str(audit), [audit.exact, audit.to_dict()["derived"]["exact"]]
found["pages"] = [audit._repr_html_(), audit.to_html()]
parts = [
    dpcore.audit(toy, pair, attack=MajorityVote(), claim=9.0, trials=10000, start=start, rng=1)
    for start in (0, 10000)
]
assert str(parts[0] + parts[1]) and (parts[0] + parts[1]).counts.n == 20000
assert "Toy" in str(dpcore.audit(toy, pair, claim=9.0, trials=1000, rng=1))
for domain in (Ball("l1", 0.5, 3), Ball("l2", 1.0, 2)):
    real = calibration.real_epsilon(toy, domain)
    found[domain.norm] = [str(real), real.value, real.reason]
found["inspect"] = str(structure.inspect(toy, [0.0, 0.25, 1.0], draws=1000, rng=1))
found["loss"] = exact.vote_loss(toy, pair)
found["infinite"] = exact.explain_infinite_loss(toy, pair)
found["outputs"] = toy([0.0], 4, 1).ravel().tolist()
print(json.dumps(found))
"""

READING = """
import pathlib, sys
import dpcore
text = (pathlib.Path(sys.argv[1]) / "vote.json").read_text(encoding="utf-8")
assert dpcore.Audit.from_json(text).mechanism == dpcore.Toy(1.0)
print(dpcore.Audit.from_json(text))
"""


@pytest.mark.parametrize("law", LAWS)
def test_a_toy_works_throughout_the_package_whatever_is_known_of_it(law, tmp_path):
    environment = copied(tmp_path, LAWS[law])
    found = json.loads(run(environment, "-c", USES, str(tmp_path)))
    read = run(environment, "-c", READING, str(tmp_path))
    assert read == found["text"] + "\n"
    assert "Toy(scale=1.0, variant='two_branch')" in found["text"]
    assert all("Toy(scale=1.0" in page for page in found["pages"])
    # The core draws what the description says, as for Laplace noise.
    assert found["outputs"] == dpcore.Laplace(1.0)([0.0], 4, 1).ravel().tolist()

    twin = dpcore.Laplace(1.0)
    pair = dpcore.Pair(np.zeros(3), np.ones(3))
    known = law in ("votes", "all")
    assert found["loss"] == (dpcore.exact.vote_loss(twin, pair) if known else None)
    assert found["exact"] == [found["loss"]] * 2
    assert ("closed form" in found["text"]) == (known or "end" in law)
    for norm, apart in (("l1", 1.0), ("l2", 2.0 * np.sqrt(2.0))):
        text, value, reason = found[norm]
        expected = {"cost": apart, "all": apart, "blind": 0.0}.get(law, np.inf)
        assert value == pytest.approx(expected, rel=1e-12)
        assert text.endswith(f": {reason}")
        assert reason
        if value == np.inf:
            assert reason == "no epsilon of Toy noise is known (audit it)"
    never = "noise that is never"
    reasons = {
        "one end": f"{never} below 0.5: an output below 1.5 in entry 0 is possible on x alone",
        "other end": f"{never} positive: an output above 0 in entry 0 is possible on x' alone",
    }
    assert found["infinite"] == reasons.get(law)


OWN = """
import dpcore

toy, pair = dpcore.Toy(1.0), dpcore.Pair([0.0, 0.0], [1.0, 1.0])

def test_of_a_user(dp_audit):
    assert "Toy" in str(dp_audit(toy, pair, claim=9.0))
"""


def test_a_toy_of_which_nothing_is_known_on_the_command_line_and_in_pytest(tmp_path):
    environment = copied(tmp_path, "Law()")
    own = tmp_path / "own.py"
    own.write_text(OWN, encoding="utf-8")
    arguments = ("--x", "0,0", "--x-prime", "1,1", "--claim", "9", "--trials", "1e4", "--seed", "1")
    said = run(environment, "-m", "dpcore", "audit", f"{own}:toy", *arguments)
    assert "Toy(scale=1.0" in said
    options = ("-q", "--rootdir", str(tmp_path), "-c", os.devnull, "--dp-trials", "10000")
    assert "1 passed" in run(environment, "-m", "pytest", *options, str(own))


def test_nothing_is_forgotten():
    assert list(forgotten()) == []


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("rust", "Toy of dpcore/mechanisms/toy.py is not in the table of rust/mechanisms/"),
        (
            "class",
            "Toy is in the table of Rust, but no file of dpcore/mechanisms/ defines its class",
        ),
        ("law", "Toy of dpcore/mechanisms/toy.py is not declared by @with_law (above @dataclass)"),
        (
            "mechanisms",
            "Toy of dpcore/mechanisms/toy.py is not re-exported by dpcore/mechanisms/__init__.py",
        ),
        ("dpcore", "Toy of dpcore/mechanisms/toy.py is not re-exported by dpcore/__init__.py"),
    ],
)
def test_a_forgotten_step_is_named(step, message, tmp_path):
    environment = copied(tmp_path, without=step)
    package, *lines = run(environment, shared_natives.__file__).splitlines()
    assert package == str(tmp_path / "dpcore")
    assert message in lines


def test_the_copy_with_every_step_has_forgotten_nothing(tmp_path):
    assert run(copied(tmp_path), shared_natives.__file__).splitlines() == [str(tmp_path / "dpcore")]


def test_a_law_without_parts_is_named(tmp_path):
    lines = run(copied(tmp_path, "Law()"), shared_natives.__file__).splitlines()
    assert lines[1:] == ["Toy of dpcore/mechanisms/toy.py declares nothing of its law"]


def test_only_the_exact_class_has_a_law():
    class Louder(dpcore.Laplace):
        pass

    assert law_of(dpcore.Laplace(1.0)).cost is not None
    assert law_of(Louder(1.0)) == Law()
    assert log_votes(Louder(1.0), np.zeros(2), True) is None
    assert dpcore.exact.vote_loss(Louder(1.0), dpcore.Pair([0.0], [1.0])) is None


def test_native_noise_stands_in_the_order_of_its_table():
    names = "Laplace Gaussian Exponential Uniform Identity RandomBits DPTextNoise"
    assert [cls.__name__ for cls in mechanisms.PRIMITIVES] == names.split()


def test_published_shows_its_own_names():
    from dpcore import published

    own = [*(cls.__name__ for cls in published.SYSTEMS), "SYSTEMS"]
    assert sorted(published.__all__) == sorted(own) == sorted(dir(published))
    # What could be imported from here before still can.
    assert published.Laplace is dpcore.Laplace
