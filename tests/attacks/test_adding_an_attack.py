"""A score attack is two files: its own, and the re-export. Forgetting the second is told."""

from __future__ import annotations

import json

import pytest
from shared_copies import PACKAGE, copied, done, edited, failure, run

TOY = '''
"""A toy: half-lines of the first entry."""

from __future__ import annotations

from dataclasses import dataclass

from .attack import ScoreAttack
from .rows import Coordinate


@dataclass(frozen=True, slots=True)
class Toy(ScoreAttack):
    """Half-lines of one entry."""

    entry: int = 0

    def candidates(self, outputs, outputs_prime, pair):
        return (Coordinate(self.entry),)
'''

RE_EXPORT = (
    ("from .timing import Timing\n", "from .timing import Timing\nfrom .toy import Toy\n"),
    (' "timing": Timing,\n', ' "timing": Timing, "toy": Toy,\n'),
    (' "Timing", "Words",\n', ' "Timing", "Toy", "Words",\n'),
)

FORGOTTEN = """
import importlib, pkgutil
from dpcore import attacks
from dpcore.attacks.attack import AuditAttack
# What every attack is made of, and the slot for a function of one's own: no attacks themselves.
BASES = {"attack"}
for found in pkgutil.iter_modules(attacks.__path__):
    if found.name in BASES:
        continue
    module = importlib.import_module(f"dpcore.attacks.{found.name}")
    for name, value in vars(module).items():
        mine = isinstance(value, type) and value.__module__ == module.__name__
        if not mine or not issubclass(value, AuditAttack):
            continue
        if name not in attacks.__all__:
            print(f"attacks/{found.name}.py: {name} is not in attacks.__all__")
        if value not in attacks.NAMES.values():
            print(f"attacks/{found.name}.py: {name} is not in attacks.NAMES")
"""

AUDIT = """
import dpcore
from dpcore import attacks
pair = dpcore.Pair([0.0, 0.0], [1.0, 0.0])
def audit(attack, start=0):
    return dpcore.audit(
        dpcore.published.HalfNoise(1.0), pair, attack=attack, trials=20_000, start=start, rng=1
    )
"""


@pytest.fixture
def toy(tmp_path):
    root = copied(tmp_path)
    (root / "dpcore/attacks/toy.py").write_text(TOY)
    edited(root, "attacks/__init__.py", *RE_EXPORT)
    return root


def test_no_attack_of_the_package_is_forgotten():
    assert run(PACKAGE.parent, FORGOTTEN) == ""


def test_a_new_score_attack_works_throughout_the_package(toy):
    assert run(toy, FORGOTTEN) == ""
    code = """
first, second = audit(attacks.named("toy")), audit(attacks.Toy(), 20_000)
assert first.attack == "Toy" and audit(attacks.Toy(1)).attack == "Toy(entry=1)"
assert first.refuted and first.event.score.index == 0 and first.curve is not None
assert (first + second).counts.n == 40_000
assert "entry 0 <" in str(first) and "entry 0" in first._repr_html_()
assert "Toy" in first.to_html("a.html")
assert dpcore.audit(
    lambda x, size, rng: x + rng.laplace(size=(size, 2)), pair, attack=attacks.Toy(), claim=0.1,
    trials=4096, stop="refuted", rng=1,
).refuted
outputs = first.outputs("x", 0, 4000), first.outputs("x_prime", 0, 4000)
recorded = dpcore.audit_outputs(*outputs, rows="independent", attack=attacks.Toy(), rng=1)
assert recorded.attack == "Toy" and recorded.epsilon_lower > 0
assert attacks.Auto((attacks.Toy(),)).members == (attacks.Toy(),)
open("a.json", "w").write(first.to_json())
"""
    run(toy, AUDIT + code)
    # A fresh process reads the file and finds what it says.
    again = "print(dpcore.Audit.from_json(open('a.json').read()) == audit(attacks.named('toy')))"
    assert run(toy, AUDIT + again) == "True\n"


def test_a_new_score_attack_is_known_to_the_command_line_and_to_pytest(toy):
    found = done(
        toy, "-m", "dpcore", "audit", "half-noise", "--epsilon", "1", "--dim", "1",
        "--attack", "toy", "--trials", "2e4", "--seed", "1", "--json",
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (1, "")
    assert json.loads(found.stdout)["attack"] == "Toy"
    told = " ".join(done(toy, "-m", "dpcore", "audit", "--help").stdout.split())
    assert "classifier, timing or toy." in told
    (toy / "test_it.py").write_text(
        "import dpcore\n"
        "def test_it(dp_audit):\n"
        "    mechanism, attack = dpcore.published.HalfNoise(1.0), dpcore.attacks.Toy()\n"
        "    dp_audit.refutes(mechanism, dpcore.Pair([0.0], [1.0]), attack=attack)\n"
    )
    report = done(toy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert report.returncode == 0, report.stdout


def test_without_the_re_export_the_missing_step_is_named(tmp_path):
    root = copied(tmp_path)
    (root / "dpcore/attacks/toy.py").write_text(TOY)
    assert run(root, FORGOTTEN).splitlines() == [
        "attacks/toy.py: Toy is not in attacks.__all__",
        "attacks/toy.py: Toy is not in attacks.NAMES",
    ]
    error = failure(root, "import dpcore; dpcore.attacks.named('toy')")
    assert error.startswith("ValueError: name must be one of 'auto', 'majority', ")
    assert error.endswith("got 'toy'")
    found = done(root, "-m", "dpcore", "audit", "half-noise", "--epsilon", "1", "--attack", "toy")
    assert found.returncode == 2
    assert "--attack must be one of 'auto', 'majority', " in found.stderr
    # The class itself works from its own file: nothing looks it up in the list.
    code = "from dpcore.attacks.toy import Toy\nfound = audit(Toy())\nprint(found.attack)\n"
    code += "assert dpcore.Audit.from_json(found.to_json()) == found and 'entry 0' in str(found)\n"
    assert run(root, AUDIT + code) == "Toy\n"


def test_the_re_export_alone_names_the_missing_file(tmp_path):
    root = copied(tmp_path)
    edited(root, "attacks/__init__.py", *RE_EXPORT)
    assert failure(root, "import dpcore.attacks").endswith("No module named 'dpcore.attacks.toy'")
