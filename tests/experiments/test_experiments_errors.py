"""What the experiments refuse."""

from __future__ import annotations

import math

import pytest

from dpcore.experiments import NAMES, get, reproduce

INF = math.inf


@pytest.mark.parametrize(
    ("name", "fields", "error", "text"),
    [
        ("published-systems", {"trials": 0}, ValueError, "trials must be"),
        ("published-systems", {"trials": True}, TypeError, "trials must be"),
        ("published-systems", {"seed": -1}, ValueError, "seed must be"),
        ("published-systems", {"dims": (1,)}, ValueError, "dims must be an integer at least 2"),
        ("published-systems", {"dims": ()}, ValueError, "dims must be"),
        ("published-systems", {"dims": (2, 2)}, ValueError, "dims must be"),
        ("published-systems", {"epsilon": 0}, ValueError, "epsilon must be"),
        ("published-systems", {"confidence": 1.0}, ValueError, "confidence must be"),
        ("dp-sniper-table", {"mechanisms": "SVT1"}, TypeError, "mechanisms must be a list or tup"),
        ("floating-point", {"systems": None}, TypeError, "systems must be a list or tuple"),
        ("published-systems", {"dims": 2}, TypeError, "dims must be a list or tuple, got 2"),
        ("habernal2022-figure1", {"dims": {2}}, TypeError, "dims must be a list or tuple"),
        ("habernal2022-figure1", {"dims": (2, 2)}, ValueError, "dims must be"),
        ("habernal2022-figure1", {"epsilons": ()}, ValueError, "epsilons must be"),
        ("habernal2022-figure1", {"epsilons": (INF,)}, ValueError, "epsilons must be"),
        ("habernal2022-figure1", {"mechanisms": ("ADEPT",)}, ValueError, "mechanisms must be"),
        ("habernal2022-figure2", {"trials": "many"}, ValueError, "trials must be"),
        ("habernal2022-figure2", {"seed": 1.5}, TypeError, "seed must be"),
    ],
)
def test_bad_configurations(name, fields, error, text):
    with pytest.raises(error, match=f"^{text}"):
        get(name).Config(**fields)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_takes_its_own_configuration_only(name):
    other = next(one for one in NAMES if one != name)
    for config in (None, 3, get(other).Config()):
        with pytest.raises(TypeError, match=r"^config must be a Config of dpcore\.experiments\."):
            get(name).run(config)


def test_bad_trials_leave_no_folder(tmp_path):
    with pytest.raises(ValueError, match=r"^trials must be"):
        reproduce("published-systems", tmp_path / "out", trials=-1)
    assert not (tmp_path / "out").exists()
