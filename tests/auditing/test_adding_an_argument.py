"""A new argument of `audit` is three files: signature, check, option. What is forgotten is told."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields

import pytest
from shared_copies import copied, done, edited, failure, run

import dpcore
from dpcore.auditing.request import Arguments

ARGUMENTS = tuple(inspect.signature(dpcore.audit).parameters)


def test_the_list_of_arguments_is_that_of_audit():
    # The bar alone goes on by itself: nothing that is counted knows of it.
    assert [field.name for field in fields(Arguments)] == [n for n in ARGUMENTS if n != "progress"]
    assert all(field.kw_only for field in fields(Arguments))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_argument_is_checked_by_name(name):
    given = {"mechanism": dpcore.Laplace(1.0), "trials": 100, "rng": 1, name: object()}
    with pytest.raises(TypeError, match=f"^{name} must be "):
        dpcore.audit(**given)


SIGNATURE = "auditing/run.py", (
    ("    progress: bool | None = None,\n) -> Audit:", "    progress: bool | None = None,\n"
     '    remark: str = "",\n) -> Audit:'),
    ("        executor=executor,\n", "        executor=executor,\n        remark=remark,\n"),
)  # fmt: skip
CHECK = "auditing/request.py", (
    ("    executor: Executor | None\n", "    executor: Executor | None\n    remark: str\n"),
    ("    attack = _resolve_attack(", '    instance("remark", given.remark, str)\n'
     "    attack = _resolve_attack("),
    ("    confidence_level,\n", "    confidence_level,\n    instance,\n"),
    ("        fewest = self.attack", "        if self.remark:\n            return (self.remark,)\n"
     "        fewest = self.attack"),
)  # fmt: skip
OPTION = "cli/options.py", (
    ("    seed: Seed = None\n    route",
     '    remark: Annotated[str, _make_option(_RUN_PANEL, "A remark.")] = ""\n'
     "    seed: Seed = None\n    route"),
)  # fmt: skip

AUDIT = """
import dpcore, warnings
warnings.simplefilter("ignore")
found = dpcore.audit(dpcore.Laplace(1.0), trials=1000, rng=1, remark="noted")
"""


def test_a_new_argument_works_throughout_the_package(tmp_path):
    root = copied(tmp_path)
    for file, changes in (SIGNATURE, CHECK, OPTION):
        edited(root, file, *changes)
    assert run(root, AUDIT + "print(found.notes)") == "('noted',)\n"
    wrong = failure(root, AUDIT.replace('"noted"', "1"))
    assert wrong == "TypeError: remark must be a str, got 1"
    found = done(
        root, "-m", "dpcore", "audit", "laplace", "--epsilon", "1", "--trials", "1000",
        "--remark", "noted", "--json",
    )  # fmt: skip
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["notes"] == ["noted"]
    (root / "test_it.py").write_text(
        "import dpcore, pytest\n"
        "@pytest.mark.filterwarnings('ignore')\n"
        "def test_it(dp_audit):\n"
        "    found = dp_audit(dpcore.Laplace(1.0), claim=1.0, remark='noted')\n"
        "    assert found.notes == ('noted',)\n"
    )
    report = done(root, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert report.returncode == 0, report.stdout


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((CHECK, OPTION), "unexpected keyword argument 'remark'"),
        ((SIGNATURE, OPTION), "unexpected keyword argument 'remark'"),
        # The field without the argument: every audit says which one is missing.
        (((SIGNATURE[0], SIGNATURE[1][:1]), CHECK), "keyword-only argument: 'remark'"),
    ],
)
def test_a_forgotten_step_is_named(tmp_path, steps, told):
    root = copied(tmp_path)
    for file, changes in steps:
        edited(root, file, *changes)
    assert told in failure(root, AUDIT)


def test_an_argument_without_a_check_is_named_by_the_test_of_checks(tmp_path):
    root = copied(tmp_path)
    edited(root, SIGNATURE[0], *SIGNATURE[1])
    edited(root, CHECK[0], CHECK[1][0])
    # What the test above asks of every argument: a wrong value is refused by name. It is not here.
    run(root, "dpcore.audit(dpcore.Laplace(1.0), trials=100, rng=1, remark=object())")
