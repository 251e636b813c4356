"""The options of `reproduce`: each means something for an experiment, or is refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dpcore.cli.app import main
from dpcore.experiments import NAMES, QUICK, config_of, get, reproduce


@pytest.mark.parametrize("name", NAMES)
def test_quick_is_the_same_for_all(name):
    config = config_of(name, quick=True)
    assert config == config_of(name, quick=True, full=False, data=None)
    if name == "adept-linkage":
        with pytest.raises(ValueError, match="trials must be left out for adept-linkage"):
            config_of(name, trials=1000)
    else:
        assert config.trials == QUICK["trials"]
        assert config_of(name, quick=True, trials=1000).trials == 1000
    assert config_of(name) == get(name).Config()
    assert name == get(name).NAME


def test_reproduce_refuses_before_it_makes_a_folder(tmp_path):
    name, out = "habernal2022-figure2", tmp_path / "out"
    for option, value in {"device": "cpu", "seeds": 2, "data": tmp_path, "full": True}.items():
        with pytest.raises(ValueError, match=rf"^{option} must be left out for {name} \(it is"):
            reproduce(name, out, **{option: value})
    for options in ({"quick": 1}, {"full": "yes"}):
        with pytest.raises(TypeError, match="must be True or False"):
            reproduce(name, out, **options)
    with pytest.raises(ValueError, match=r"^trials must be"):
        reproduce(name, out, trials=-1)
    assert not out.exists()
    assert config_of("noise-layers", seeds=2, device="cpu").seeds == 2
    assert config_of("dpnr-table", levels=[5.0, 1.0], trials="1e3").levels == (1.0, 5.0)


def test_the_command_line(tmp_path, capsys):
    words = ["reproduce", "habernal2022-figure2", "--out", str(tmp_path)]
    assert main([*words, "--quick", "--no-progress"]) == 0
    assert "20,000" in capsys.readouterr().out
    assert main([*words, "--device", "cpu"]) == 2
    assert "--device must be left out for habernal2022-figure2" in capsys.readouterr().err


WITHOUT = """
import sys
sys.modules["torch"] = None
from dpcore.cli.app import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_torch_the_experiments_are_listed_and_one_says_what_to_install(tmp_path):
    def dpcore(*words):
        command = [sys.executable, "-c", WITHOUT, "reproduce", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    listed = dpcore("--list")
    assert (listed.returncode, "noise-layers" in listed.stdout) == (0, True)
    asked = dpcore("noise-layers", "--quick", "--out", str(tmp_path))
    assert asked.returncode == 2
    assert "pip install 'dpcore[torch]'" in asked.stderr
