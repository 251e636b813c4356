"""The experiments: files, strict JSON, determinism, and agreement with the exact laws."""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import matplotlib
import pytest
from shared_experiments import get_possible, mark_needs, run_experiment

from dpcore import Audit, experiments
from dpcore.experiments import get, habernal2022_figure2, published_systems, reproduce
from dpcore.published import SYSTEMS

INF = math.inf

# The audit's table of the losses that the vote can see; None where the table has no entry.
GOLDEN = {
    ("Laplace", 0.1): (0.0976, 0.0988, 0.0375, 0.0163, 0.0110, 0.0076),
    ("Laplace", 1.0): (0.8318, 0.8997, 0.3655, 0.1615, 0.1099, 0.0756),
    ("Laplace", 10.0): (5.6898, 6.3025, 3.1649, 1.5525, 1.0776, 0.7485),
    ("ADePT", 0.1): (0.0976, 0.1952, 0.2940, 0.5096, 0.6931, 0.9576),
    ("ADePT", 1.0): (0.8318, 1.6636, 2.5811, 5.1144, 8.0702, 13.7432),
    ("halved output", 1.0): (1.0, 1.0, 0.3983, 0.1708, 0.1147, 0.0780),
    ("half noise", 1.0): (1.490, 1.664, 0.713, 0.321, None, 0.151),
    ("random", 1.0): (0.0,) * 6,
    ("no privacy", 1.0): (INF,) * 6,
    ("DPText", 1.0): (INF,) * 6,
}


strict = partial(json.loads, parse_constant=pytest.fail)
"""Parse as strict JSON: a bare NaN or Infinity fails."""


def number(value):
    return INF if value == "inf" else value


PARTS = {
    "published-systems": {"dims": (2, 3)},
    "dp-sniper-table": {"mechanisms": ("TruncatedGeometric", "RAPPOR"), "repeats": 2},
    # The others are functions, made anew in every run, or draw from the operating system.
    "floating-point": {"systems": ("dpcore.Laplace", "dpcore.Gaussian")},
    "habernal2021-figure1": {"dims": (1, 2, 24, 160)},
    "divergence-accuracy": {"cases": ("n1-half", "atoms-8", "cauchy")},
    "noise-layers": {"layers": ("LaplaceNoise", "SharedNoise"), "seeds": 1},
    "dpnr-robust-adaptive": {"quick": True, "seeds": 1, "lines": ("not robust",)},
    "word2vec-leakage": {"seeds": 1, "epsilons": (5.0,)},
    "word-dp-attack": {"quick": True, "trials": 150},
    "renyi-vs-alpha": {"quick": True},
    "renyi-of-mechanisms": {"trials": 200},
    "sensitivity-table": {"trials": 300},
    "redaction-names": {"quick": True},
    "redaction-sweep": {"quick": True},
    "dpnr-table": {"quick": True, "levels": (5.0,), "claims": (1.0,), "texts": 300, "dim": 16},
    "dptext-encoder": {"quick": True, "texts": 300, "epochs": 1, "noises": ("repaired",)},
    "dpsgd-audit": {"quick": True, "trials": 300},
    "model-closeness": {"quick": True},
    "adept-rewrite": {"quick": True, "claimed": (300.0,), "variants": ("published", "l1")},
    "adept-linkage": {"quick": True, "claimed": (1000.0,), "variants": ("published", "gaussian")},
    "dpsgd-vs-redaction": {"quick": True},
    "encoder-frontier": {"quick": True, "trials": 200},
    "scaling": {"quick": True},
    "released-libraries": {"packages": ("numpy", "scipy")},
}
"""Of experiments that take long, a part; they have tests of their own."""

AXES = {
    **dict.fromkeys(experiments.NAMES, 2),
    **dict.fromkeys(("searched-pairs", "floating-point", "noise-layers"), 1),
    **dict.fromkeys(("habernal2021-figure1", "divergence-accuracy", "renyi-vs-alpha"), 3),
    **dict.fromkeys(("dpsgd-audit", "encoder-frontier"), 3),
    **dict.fromkeys(("redaction-sweep", "dpsgd-vs-redaction"), 4),
    **dict.fromkeys(("habernal2022-figure2", "word-dp-attack"), 6),
    **dict.fromkeys(("habernal2022-figure1", "model-closeness"), 8),
    "renyi-of-mechanisms": 16,
}
"""Panels of each picture."""


@pytest.fixture
def parts(monkeypatch):
    """Whatever is asked of an experiment is asked of its part."""
    for name, fields in PARTS.items():
        monkeypatch.setattr(get(name), "Config", partial(get(name).Config, **fields))
    monkeypatch.setattr(get("searched-pairs"), "MECHANISMS", ("ReportNoisyMax1",))
    faults = {name: get("dpsgd-audit").FAULTS[name] for name in ("half the noise", "fixed batches")}
    monkeypatch.setattr(get("dpsgd-audit"), "FAULTS", faults)


TIMED = {"floating-point": "rows", "dpsgd-audit": "cells", "scaling": "measured"}
"""The records of which a table shows the time."""


def table(name, result):
    """The table without the times that some of them show."""
    if name == "dp-sniper-table":
        return result.table(times=False)
    if name == "released-libraries":
        timeless = tuple(replace(row, draw_seconds=None) for row in result.rows)
        return replace(result, rows=timeless).table()
    if field := TIMED.get(name):
        timeless = tuple(replace(one, seconds=math.nan) for one in getattr(result, field))
        result = replace(result, **{field: timeless})
    return result.table()


@pytest.fixture(scope="module")
def grid():
    """The paper's whole grid, with few trials."""
    return run_experiment("habernal2022-figure1", trials=200_000, seed=5)


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(
    "name", [mark_needs(name, slow=name != "published-systems") for name in experiments.NAMES]
)
def test_files_picture_and_the_seed_that_alone_decides(name, tmp_path):
    """One run for all of this: some take long. Two processes change nothing."""
    folder = tmp_path / "new" / "folder"
    module, settings = get_possible(name), {"trials": PARTS.get(name, {}).get("trials", 1000)}
    if name == "adept-linkage":
        settings = {}
    result = reproduce(name, folder, **settings, seed=7, threads=2, progress=False)
    assert result.seconds > 0.0
    endings = ("json", "png", "svg")
    assert sorted(p.name for p in folder.iterdir()) == [f"{name}.{end}" for end in endings]
    record = strict((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert (record, record["experiment"]) == (result.to_dict(), name)
    assert record["config"]["seed"] == "7"
    assert record["config"].get("trials") == settings.get("trials")
    assert record["partial"] is False
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (folder / f"{name}.svg").read_text(encoding="utf-8")
    assert not any(line != line.rstrip() for line in result.table().splitlines())
    before = dict(matplotlib.rcParams)
    assert len(result.plot().axes) == AXES[name]
    assert dict(matplotlib.rcParams) == before
    again = module.run(module.Config(**settings, seed=7), threads=1)
    assert result == again
    assert table(name, result) == table(name, again)
    # Those that take long are not run a third time.
    if "quick" not in PARTS.get(name, {}):
        assert table(name, result) != table(name, run_experiment(name, **settings, seed=8))


def test_a_path_of_a_column_names_attributes():
    """A type checker does not read these strings, so that a rename can leave one behind."""
    sources = Path(experiments.__file__).parents[1].rglob("*.py")
    nodes = [node for source in sources for node in ast.walk(ast.parse(source.read_text("utf-8")))]
    names = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    fields = (node.target for node in nodes if isinstance(node, ast.AnnAssign))
    names |= {field.id for field in fields if isinstance(field, ast.Name)}
    calls = (node for node in nodes if isinstance(node, ast.Call))
    columns = [call.args for call in calls if ast.unparse(call.func).endswith("Column")]
    values = [args[1].value for args in columns if len(args) > 1 and hasattr(args[1], "value")]
    paths = [value for value in values if isinstance(value, str)]
    assert len(paths) > 50
    assert [path for path in paths if not {*path.split(".")} <= names] == []


def test_same_bytes_again(tmp_path):
    for folder in ("a", "b"):
        reproduce("habernal2022-figure2", tmp_path / folder, trials=1000)
    for ending in ("png", "svg"):
        a, b = (tmp_path / f / f"habernal2022-figure2.{ending}" for f in ("a", "b"))
        assert a.read_bytes() == b.read_bytes()


def test_a_part_of_the_grid_repeats_its_cells():
    part = run_experiment(
        "habernal2022-figure1", trials=2000, seed=7, epsilons=(2.0, 0.5), dims=(8,),
        mechanisms=("DPText", "Laplace"),
    )  # fmt: skip
    whole = run_experiment("habernal2022-figure1", trials=2000, seed=7)
    assert len(part.cells) == 4
    assert set(part.cells) <= set(whole.cells)


def test_grid_is_complete_and_its_seeds_differ(grid):
    record = grid.to_dict()
    places = {(cell["mechanism"], cell["epsilon"], cell["dim"]) for cell in record["cells"]}
    assert len(places) == len(record["cells"]) == 7 * 7 * 6
    assert {dim for _, _, dim in places} == {1, 2, 8, 32, 64, 128}
    assert {epsilon for _, epsilon, _ in places} == {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0}
    assert len({cell["seed"] for cell in record["cells"]}) == len(record["cells"])
    for cell in record["cells"]:
        assert cell["counts"]["n"] == cell["counts"]["n_prime"] == 200_000


def test_exact_column_is_the_golden_table(grid):
    exact = {
        (cell["mechanism"], cell["epsilon"], cell["dim"]): number(cell["exact"])
        for cell in grid.to_dict()["cells"]
    }
    for (name, epsilon), expected in GOLDEN.items():
        # The row of half noise is printed with three decimals, the others with four.
        tolerance = 5.1e-4 if name == "half noise" else 5.1e-5
        for dim, value in zip(grid.config.dims, expected, strict=True):
            if value is not None:
                assert exact[name, epsilon, dim] == pytest.approx(value, abs=tolerance)
    assert exact["ADePT", 10.0, 128] == pytest.approx(284.2, abs=0.05)


def test_counts_agree_with_the_exact_law(grid):
    # 588 exact two-sided tests; Bonferroni at 1e-4: the fixed seed fails by chance once in 10^4.
    assert grid.smallest_p_value > 1e-4 / (2 * len(grid.cells))


def test_agreement_has_power():
    # Negative control: counts of one law tested against that of 2 % less noise are noticed.
    module = get("habernal2022-figure1")
    cell = run_experiment(
        "habernal2022-figure1", trials=10**6, seed=1, epsilons=(1.0,), dims=(2,),
        mechanisms=("Laplace",),
    ).cells[0]  # fmt: skip
    assert min(cell.count_p_values) > 1e-3
    law = module.vote_log_probabilities(module.LaplaceMechanism(1.02, 2.0), cell.audit.pair)
    counts = cell.audit.counts
    assert module._p_value(counts.k, counts.n, math.exp(law.log_p)) < 1e-4 / 588


def test_p_value_at_the_ends():
    p_value = get("habernal2022-figure1")._p_value
    assert p_value(0, 10, 0.0) == p_value(10, 10, 1.0) == 1.0
    assert p_value(3, 10, 0.0) == p_value(7, 10, 1.0) == 0.0
    assert p_value(0, 10, 0.5) == pytest.approx(2 / 1024)
    assert p_value(5, 10, 0.5) == 1.0


def test_figure1_bounds(grid):
    for cell in grid.cells:
        assert cell.audit.epsilon_lower <= cell.audit.epsilon_hat
        assert math.isfinite(cell.audit.epsilon_lower)
    for name in ("random", "Laplace", "halved output"):
        assert not any(cell.audit.refuted for cell in grid.of(name))
    for name in ("no privacy", "DPText"):
        assert all(cell.audit.refuted for cell in grid.of(name))
        assert all(cell.audit.epsilon_hat == INF for cell in grid.of(name))
    # An empty cell: the estimate is infinite, the truth is not.
    empty = next(c for c in grid.of("ADePT") if (c.epsilon, c.dim) == (10.0, 128))
    assert empty.audit.epsilon_hat == INF
    assert empty.exact < 285


def test_main_job_agrees_with_the_truth_at_two_entries():
    # With 10^6 trials every false claim is refuted with probability above 1 - 1e-9 (ADePT, whose
    # loss 1.228 is nearest, is 78 standard errors away); a true one with at most 5 % each, and
    # with far less where the vote sees .9: the fixed seed leaves nothing to luck.
    result = run_experiment("published-systems", trials=10**6, seed=2, dims=(2,))
    attacks = ("vote", "auto", "Coordinatewise")
    for attack in attacks:
        verdicts = {row.system: row.audit.refuted for row in result.rows if row.attack == attack}
        assert verdicts == {cls.__name__: not cls.sound for cls in SYSTEMS}
        assert result.agreement(2, attack) == (4, 4, 0, 5)
    assert result.agreement(2) == (4, 4, 0, 5)
    assert [row.audit.trials for row in result.rows[::9]] == [10**6, 10**5, 10**5]
    assert result.missed(2) == ()
    assert "4 of 4 false claims refuted, 0 of 5 true claims refuted" in result.table()


@pytest.fixture(scope="module")
def main_job():
    """At 16 entries the vote misses what it misses at 128; the other attacks count 40,000 draws."""
    return run_experiment("published-systems", trials=400_000, seed=2, dims=(2, 16))


def test_main_job_says_what_the_vote_missed(main_job):
    # Far from chance: auto certifies 2.1 of ADePT, Coordinatewise 3.9 and 1.9 of HalfNoise.
    assert [row.dim for row in main_job.rows] == [2] * 27 + [16] * 27
    assert main_job.agreement(16, "vote") == (2, 4, 0, 5)
    assert main_job.agreement(16, "auto") == (4, 4, 0, 5)
    assert main_job.agreement(16, "Coordinatewise") == main_job.agreement(16) == (4, 4, 0, 5)
    adept, half = main_job.missed(16)
    assert adept.startswith(
        "ADePT: true loss 4 at 16 entries; the vote sees only 0.9292 of it (no number of "
        "trials helps); refuted by auto and Coordinatewise; known: "
    )
    assert half.startswith("HalfNoise: true loss 2 at 16 entries; the vote sees only 0.4752 of it")
    assert half.endswith("known: half the scale that the sensitivity needs: loses 2 epsilon")


def test_nobody_reads_that_a_false_claim_passes(main_job):
    lines = main_job.table().splitlines()
    claims = {cls.__name__: cls.sound for cls in SYSTEMS}
    rows = [line for line in lines if line.split(maxsplit=1)[:1] and line.split()[0] in claims]
    assert len(rows) == 18
    for line in rows:
        refuted = not claims[line.split()[0]]
        assert ("refuted by" in line, "*" in line, "not refuted" in line) == (
            refuted, refuted, not refuted,
        )  # fmt: skip
    assert any("ADePT" in line and "refuted by auto, Coordinatewise" in line for line in rows)
    assert "Not refuted says what the attack sees, not that the claim holds." in main_job.table()
    assert max(map(len, lines)) <= 120


def test_audits_that_could_not_refute_are_undecided():
    settings = published_systems.Config(trials=2000, epsilon=20.0, dims=(2,))
    table = published_systems.run(settings, progress=False).table()
    assert re.findall(r"(refuted|undecided)$", table, re.M) == ["undecided"] * 9


def test_true_losses(main_job):
    for row in main_job.rows:
        expected = {
            "ADePT": math.sqrt(row.dim), "ADePTReference": row.dim, "DPText": INF, "HalfNoise": 2.0
        }.get(row.system, 1.0)  # fmt: skip
        assert row.true_loss == pytest.approx(expected, rel=1e-12)
        assert row.sound == (row.true_loss <= 1.0 + 1e-12)
        if row.attack == "vote":
            assert row.audit.exact <= row.true_loss * (1 + 1e-12)


def test_main_job_json_holds_the_audits(main_job):
    record = strict(json.dumps(main_job.to_dict(), allow_nan=False))
    rows = record["rows"]
    assert record["missed"]["16"] == list(main_job.missed(16))
    assert record["agreement"]["16"]["by_attack"]["vote"]["false_refuted"] == 2
    assert record["agreement"]["16"]["false_refuted"] == 4
    assert [Audit.from_dict(row["audit"]) for row in rows] == [row.audit for row in main_job.rows]
    assert [row["attack"] for row in rows] == [row.attack for row in main_job.rows]


def test_histograms_agree_with_their_laws():
    # 10 means, 10 second moments at 5 standard errors: false alarm below 1.2e-5.
    result = run_experiment("habernal2022-figure2", trials=10**6, seed=4)
    for drawn in result.histograms:
        errors = (drawn.std_error_of_mean, drawn.std_error_of_squares)
        assert abs(drawn.mean - drawn.law.mean) < 5 * errors[0]
        assert abs(drawn.square - drawn.law.square) < 5 * errors[1]
        assert drawn.trials == 10**6
        sd = math.sqrt(drawn.law.atom * (1 - drawn.law.atom) * drawn.trials)
        assert abs(drawn.zeros - drawn.law.atom * drawn.trials) <= 5 * sd
    assert [drawn.below > 0 for drawn in result.histograms] == [True, True, True, False, False]


def test_histogram_bins_follow_the_density():
    # Chi-square over 100 bins and the rest; the 1e-6 point for 100 degrees of freedom is 182.
    for drawn in run_experiment("habernal2022-figure2", trials=10**6, seed=4).histograms:
        module = habernal2022_figure2
        edges = [module.LOW + i * (module.HIGH - module.LOW) / module.BINS for i in range(101)]
        up, down = drawn.law.weights
        statistic = 0.0
        for low, high, seen in zip(edges, edges[1:], drawn.counts, strict=False):
            weight = up if low > -0.05 else down
            mass = weight * abs(math.exp(-abs(low)) - math.exp(-abs(high))) * 10**6
            if mass == 0:
                assert seen == 0
            else:
                statistic += (seen - mass) ** 2 / mass
        assert statistic < 182


def test_correct_formulas_have_their_own_seeds():
    result = run_experiment("habernal2022-figure2", trials=1000)
    assert len({drawn.seed for drawn in result.histograms}) == 5
    assert len({drawn.counts for drawn in result.histograms}) == 5


def test_bad_names(tmp_path):
    assert experiments.NAMES[:2] == ("published-systems", "habernal2022-figure1")
    message = f"^name must be one of {', '.join(map(repr, experiments.NAMES))}, got 'figure1'$"
    for call in (get, lambda name: reproduce(name, tmp_path / "out")):
        with pytest.raises(ValueError, match=message):
            call("figure1")
        with pytest.raises(TypeError, match=r"^name must be one of"):
            call(1)
    assert not (tmp_path / "out").exists()
