"""What the README and the pages of the site show is run, and must print what they say."""

from __future__ import annotations

import pytest
from shared_extras import needs
from shared_site import PAGES, here, name_of, needed, run_page


@pytest.fixture(autouse=True)
def plain(monkeypatch, tmp_path):
    """A terminal of 100 columns without colours; no plugin twice in a pytest inside pytest."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb",
        "HF_HUB_OFFLINE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("page", here(PAGES), ids=name_of)
def test_page(page):
    for name in needed(page.read_text("utf-8")):
        needs(name)
    run_page(page)
