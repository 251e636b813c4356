"""The scripts of the gallery, each run at few trials."""

from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import pytest
from shared_extras import needs
from shared_site import SCRIPTS, here, name_of, needed, run_gallery_script


@pytest.mark.parametrize("script", here(SCRIPTS), ids=name_of)
def test_script(script, tmp_path, monkeypatch):
    for name in needed(script.read_text("utf-8")):
        needs(name)
    monkeypatch.chdir(tmp_path)
    before = matplotlib.get_backend()
    plt.switch_backend("agg")
    try:
        run_gallery_script(script)
    finally:
        plt.close("all")
        plt.switch_backend(before)
