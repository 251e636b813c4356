"""What every experiment is declared with: settings, columns, plain data, and its timed run."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from dpcore.errors import integer
from dpcore.experiments.base import (
    SEED,
    Column,
    Settings,
    align_columns,
    encode_attributes,
    setting,
)
from dpcore.experiments.running import Tabled, time_run


@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
    trials: int = 100
    seed: int = SEED
    full: bool = False
    quick: bool = False
    seeds: int = setting(3, quick=1, full=10)
    dims: tuple[int, ...] = setting((8, 2), integer, 1, 64, quick=(4,), ascending=True)
    rows: int | None = setting(None, integer, 10)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    config: Config
    rows: tuple[complex, ...]

    def table(self) -> str:
        columns = (Column("size", "real", ".1f"), Column("place", lambda z: z.imag, left=True))
        return self.join_parts("head", align_columns(columns, self.rows), "")


@time_run()
def run(config, *, threads=None, progress=None):
    return Result(config, (1 + 2j, 10 + 20j), partial=config.quick)


@pytest.mark.parametrize(
    ("given", "seeds", "dims"),
    [
        ({}, 3, (2, 8)),
        ({"quick": True}, 1, (4,)),
        ({"full": True}, 10, (2, 8)),
        ({"full": True, "seeds": 2, "dims": [5, 1]}, 2, (1, 5)),
        ({"seeds": None, "dims": None}, 3, (2, 8)),
    ],
)
def test_a_setting_has_values_of_quick_usual_and_full_runs(given, seeds, dims):
    config = Config(**given)
    assert (config.seeds, config.dims, config.rows) == (seeds, dims, None)
    assert Config(trials="1e3", rows=10).trials == 1000


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"trials": None}, TypeError, "trials must be a whole number"),
        ({"dims": (65,)}, ValueError, "dims must be an integer from 1 to 64"),
        ({"dims": 8}, TypeError, "dims must be a list"),
        ({"rows": 9}, ValueError, "rows must be an integer at least 10"),
    ],
)
def test_each_field_has_its_check(given, error, words):
    with pytest.raises(error, match=f"^{words}"):
        Config(**given)


def test_a_result_is_timed_and_says_where_it_ended():
    whole, part = run(Config()), run(Config(quick=True))
    assert str(whole) == "head\n\nsize  place\n 1.0  2.0\n10.0  20.0"
    assert "\n\nINTERRUPTED: only what was done is shown\n\n" in part.table()
    assert whole.seconds > 0.0
    assert whole == Result(whole.config, whole.rows, seconds=5.0)
    with pytest.raises(TypeError, match="config must be a Config of"):
        run(Tabled())


def test_attributes_are_plain_data_by_their_names():
    found = encode_attributes(Config(), "seed trials many=seeds dims", more=[1.0])
    assert found == {"seed": "2022", "trials": 100, "many": 3, "dims": [2, 8], "more": [1.0]}
