"""What the experiments refuse."""

from __future__ import annotations

import pytest

from dpcore.experiments import NAMES, get, reproduce


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
