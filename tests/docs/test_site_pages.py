"""What the README, the pages and the gallery show is run, and must print what they say."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import pytest
from shared_extras import ALL, needs
from shared_site import PAGES, SCRIPTS, name_of, needed, run_page, run_script

HERE = [at for at in PAGES if needed(at.read_text("utf-8"))] if ALL else [*PAGES, *SCRIPTS]
"""All of it, or where every optional package is, pages that need one: scripts that do so are run
where the site is built, which fails with them."""


@pytest.fixture(autouse=True)
def plain(monkeypatch, tmp_path):
    """An empty folder, a terminal of 100 columns without colours, no window."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "HF_HUB_OFFLINE": "1",
        # The plugin of a pytest inside this one is named, for it may not be installed.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    before = matplotlib.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.parametrize("place", HERE, ids=name_of)
def test_it_runs_as_shown(place):
    for name in needed(place.read_text("utf-8")):
        needs(name)
    (run_page if place.suffix == ".md" else run_script)(place)
