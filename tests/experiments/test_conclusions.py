"""Conclusions of quick runs: each is derived anew from the rows that are printed above it."""

from __future__ import annotations

import re
from functools import cache

import pytest
from shared_experiments import get_possible, mark_needs

from dpcore import experiments


@cache
def print_table(name):
    module = get_possible(name)
    config = experiments.config_of(name, quick=True)
    return module.run(config, threads=1, progress=False).table()


def rows_of(text, *starts):
    """Return the cells of the lines that begin with one of these words."""
    lines = (line for line in text.splitlines() if line.startswith(starts))
    return [re.split(r"\s{2,}", line.strip()) for line in lines]


def numbers(cell):
    return [float(x) for x in re.findall(r"-?\d+\.?\d*(?:e[+-]?\d+)?", cell)]


def count_of(text, pattern):
    """Return the numbers that a sentence states."""
    match = re.search(pattern, " ".join(text.split()))
    assert match, pattern
    return [int(group) for group in match.groups()]


def check_dpsgd_vs_redaction(text):
    rows = {row[0]: row for row in rows_of(text, "DP-SGD", "random ", "ranked ", "uni")}
    values = {label: float(row[1]) for label, row in rows.items() if len(row) > 2}
    sentences = re.findall(
        r"^(random|ranked) \(perp.*\) against (DP-SGD.*?\d): (.*)\.$", text, re.M
    )
    assert len(sentences) == 4
    for kind, private, parts in sentences:
        for part in parts.split("; "):
            levels = re.findall(r"([\d.]+) \([\d.]+, [\d.]+\)", part)
            for value in (values[f"{kind} {level}"] for level in levels):
                is_useful = value < values["unigram"]
                if "predicts better" in part:
                    assert value < values[private]
                    assert is_useful
                elif "no better" in part:
                    assert not is_useful
                else:
                    assert value >= values[private]
    lower = values["DP-SGD, searched 8"] < values["DP-SGD 8"]
    assert count_of(text, r"source's at (\d) of 1 epsilons") == [lower]


def check_redaction_sweep(text):
    for policy in ("random", "ranked"):
        points = [(float(row[3]), float(row[-1])) for row in rows_of(text, f"{policy} ")
                  if len(row) > 10]  # fmt: skip
        falls = [row for row, point in enumerate(points) if point[0] >= 0.7]
        ends = [utility for _, utility in points[falls[-1] : falls[-1] + 2]]
        value = float(re.search(rf"falls to accuracy 0.7:.*?{policy} ([\d.]+)", text)[1])
        assert min(ends) - 0.006 <= value <= max(ends) + 0.006


def check_redaction_names(text):
    heads, *_ = rows_of(text, "attacker reads")
    for policy in ("first names", "first names and people"):
        masked = next(row for row in rows_of(text, policy) if row[0] == policy)
        row = rows_of(text, f"{policy} masked ")[0]
        left = masked[3:]
        people = [name for name, share in zip(heads[1:], left, strict=False)
                  if share == "0.0 %" and name != "topic"]  # fmt: skip
        stars = sum("*" in cell for name, cell in zip(heads[1:], row[1:], strict=True)
                    if name in people)  # fmt: skip
        assert count_of(text, rf"With {policy} masked, (\d) of (\d) people") == [stars, len(people)]


def check_dptext_encoder(text):
    lines = [line for line in text.splitlines() if line.startswith(("zero ", "resample", "repair"))]
    lines = [line for line in lines if "epsilon" not in line and "*" in line]
    at_floor = sum("at floor" in line for line in lines)
    assert count_of(text, r"at its floor there \((\d+) of (\d+) rows") == [at_floor, len(lines)]


def check_encoder_frontier(text):
    sentence = re.search(r"At more than twice the majority's accuracy \(([\d.]+)\): (.*)\.", text)
    rows = rows_of(text, "L1 clip", "min-max", "8 ", "16 ")
    useful = [(row[0], row[1]) for row in rows if float(row[3]) > 2.0 * float(sentence[1])]
    for name, epsilon in useful:
        assert re.search(rf"{re.escape(name)} at epsilon [^;]*\b{epsilon} \(", sentence[2])
    assert len(re.findall(r"\(0\.\d+\)", sentence[2])) == len(useful)


def check_dpnr_robust_adaptive(text):
    plain, robust = (
        [float(value) for value in rows_of(text, name)[0][-2:]] for name in ("not rob", "robust  ")
    )
    gains = [b > a for a, b in zip(plain, robust, strict=True)]
    stated = re.search(r"robust is better than not robust (from epsilon (\d)|at no epsilon)", text)
    assert stated[2] == ("1" if all(gains) else "5" if gains[1] else None)


def check_published_systems(text):
    for part in re.findall(r"(\d+ entries\nsystem.*?)Verdicts (.*?)\.", text, re.S):
        rows = [row for row in rows_of(part[0], "") if row[1:2] in (["true"], ["false"])]
        refuted = [row[1] for row in rows if row[-1].startswith("refuted")]
        kinds = [row[1] for row in rows]
        expected = [x.count(y) for y in ("false", "true") for x in (refuted, kinds)]
        assert numbers(part[1])[1:] == expected


def check_noise_layers(text):
    lines = [line for line in text.splitlines() if re.search(r" float(32|64) ", line)]
    faults = [line for line in lines if " fault " in line]
    shown = [line for line in faults if not line.endswith("  -")
             or numbers(line)[-2] > numbers(line)[-4]]  # fmt: skip
    stated = count_of(text, r"(\d+) of (\d+) faults certified .* of (\d+) layers without")
    assert stated == [len(shown), len(faults), len(lines) - len(faults)]


def check_dpsgd_audit(text):
    rows = rows_of(text, "generated ")
    for way, column in (("One run", 5), ("Many runs", 8)):
        refuted = ", ".join(row[1] for row in rows if row[column].endswith("!"))
        assert f"{way} refute{'s' * (way == 'One run')} {refuted}. " in text
    assert ("As expected, one step refutes every fault" in text) is all(
        row[2].endswith("!") is (row[1] != "repaired") for row in rows if row[2] != "-"
    )


def check_adept_rewrite(text):
    majority = float(re.search(r"majority ([\d.]+)", text)[1])
    rows = [row for row in rows_of(text, "published", "scaled", "l1 ", "gaussian") if len(row) > 8]
    for variant in ("published", "scaled", "l1", "gaussian"):
        better = [numbers(row[2])[0] for row in rows
                  if row[0] == variant and numbers(row[7])[1] > majority]  # fmt: skip
        stated = re.search(rf"^  {variant}: (.*)$", text, re.M)[1]
        assert stated == (f"{min(better):.0f}" if better else "none here")


def check_dp_sniper_table(text):
    rows = [row for row in text.splitlines() if re.search(r"(below|at least)(, .*)?$", row)]
    at_least = sum(row.endswith("at least") for row in rows)
    assert count_of(text, r"better bound: (\d+) of (\d+) mechanisms") == [at_least, len(rows)]


def check_renyi_of_mechanisms(text):
    rows = [row for row in text.splitlines() if re.search(r"  (ball|score)$", row)]
    above = sum(numbers(row)[-4] > numbers(row)[-5] for row in rows if " inf " not in row)
    assert above == 0
    assert count_of(text, r"above the truth: (\d+) of (\d+)")[0] == 0


def check_word_dp_attack(text):
    half = 2.0 * float(re.search(r"intervals of the first split \+- [\d.]+ to ([\d.]+)", text)[1])
    for row in rows_of(text, "SanText ", "CusText", "MetricLaplace"):
        stays = max(float(row[4]), float(row[5])) > 0.5 + half
        stated = re.search(rf"  {row[0]}: (yes|not shown) at epsilon {row[1]} ", text)
        assert stated is None or stated[1] == ("yes" if stays else "not shown")


def check_released_libraries(text):
    verdicts = [row[-3] for row in rows_of(text, "numpy ", "scipy ")]
    rows, packages, passed = count_of(
        text, r"(\d+) mechanisms of (\d+) released packages: (\d+) not refuted"
    )
    assert rows == len(rows_of(text, "numpy ", "scipy "))
    assert packages == 2
    assert passed == text.count(" not refuted ") > 0
    assert len(verdicts) == rows


CHECKS = {
    name.removeprefix("check_").replace("_", "-"): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}
WITHOUT = {
    "habernal2022-figure1", "habernal2022-figure2", "searched-pairs", "floating-point",
    "habernal2021-figure1", "sensitivity-table", "divergence-accuracy", "word2vec-leakage",
    "renyi-vs-alpha", "dpnr-table", "adept-linkage", "model-closeness", "scaling",
}  # fmt: skip
"""Experiments that print figures and no comparison of rows in words."""


def test_every_experiment_is_checked_or_has_no_conclusion():
    assert {*CHECKS} | WITHOUT == {*experiments.NAMES}
    assert not {*CHECKS} & WITHOUT


@pytest.mark.parametrize("name", [mark_needs(name, slow=True) for name in CHECKS])
def test_conclusions_follow_from_the_rows(name):
    CHECKS[name](print_table(name))
