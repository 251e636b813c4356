"""What the README, the pages and the gallery show is run, and must print what they say."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import pytest
from shared_extras import needs
from shared_site import PAGES, SCRIPTS, name_of, needed, run_page, run_script

SHOWN = [
    *(pytest.param(page, marks=pytest.mark.extras) for page in PAGES),
    *(
        pytest.param(at, marks=pytest.mark.sweep)
        for at in SCRIPTS
        if not needed(at.read_text("utf-8"))
    ),
]
"""Pages run once in the short run, with all packages. Scripts that need an optional package run
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


@pytest.mark.parametrize("place", SHOWN, ids=name_of)
def test_it_runs_as_shown(place):
    for name in needed(place.read_text("utf-8")):
        needs(name)
    (run_page if place.suffix == ".md" else run_script)(place)
