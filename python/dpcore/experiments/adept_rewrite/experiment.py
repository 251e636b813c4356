"""Utility of texts rewritten by ADePT, at the true epsilon and not at the claimed one.

ADePT rewrites texts by an auto-encoder with noise in the middle. As published, its noise gives
sqrt(n) times the epsilon claimed; "scaled" has the noise that its claim needs, with the same
weights, "l1" and "gaussian" are other repairs. The auto-encoder is trained on public texts, epochs
are fixed beforehand, and what is rewritten are other texts, on which nothing is chosen.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import choice, flag, instance, integer, invalid, mistyped
from ...mechanisms import positive
from ...records import Shown
from ...streams import threads_of
from ...text.needed import needed
from ..running import (
    SEED,
    Tabled,
    check_config,
    check_list,
    gather_in_processes,
    require_own_config,
)
from .corpora import Texts, read_corpora, rejoin_words
from .rewriting import Fitted, Row, Setup, clip_of, rewrite_and_audit, train_encoder
from .utility import Utility, measure_intent_utility

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "adept-rewrite"
VARIANTS = ("published", "scaled", "l1", "gaussian")
CLAIMED = (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_QUICK_CLAIMS = (10.0, 300.0)
_FULL_WIDTHS = (64, 128, 256)
_MIN_AUDIT_REWRITES = 1000
"""Rewrites that an audit of texts takes at least."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the training, the rewriting and the audits.

    Args:
        trials: vectors on each side of every audit; audits of rewritten texts take a tenth.
        seed: int in [0, 2**63); all training, noise and audits get seeds derived from it.
        data: folder with the folders `atis` and `snips`, or one of these; None makes texts up.
        full: SNIPS as well as ATIS, three seeds, and 64 and 256 hidden entries in addition to 128.
        quick: no more than shows that it works: few texts, little training, two claims.
        seeds: trainings of each auto-encoder, of which mean and spread are shown; None is 1, and 3
            where `full` is set.
        device: where encoder and decoder run, such as "cpu".
        confidence: probability that a bound or an interval holds, for each on its own.
        claimed: the epsilons claimed, in order.
        variants: of the noise.
        examples: texts that are shown with all their rewrites.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range, or `full` and `quick` are both set.

    Example:
        >>> Config(quick=True).claimed
        (10.0, 300.0)
    """

    trials: int = 10**5
    seed: int = SEED
    data: str | PathLike[str] | None = None
    full: bool = False
    quick: bool = False
    seeds: int | None = None
    device: str = "cpu"
    confidence: float = 0.95
    claimed: tuple[float, ...] | None = None
    variants: tuple[str, ...] = VARIANTS
    examples: int = 5

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        if flag("full", self.full) and flag("quick", self.quick):
            raise invalid("quick", "left out where full is set", self.quick)
        if self.data is not None and not isinstance(self.data, (str, PathLike)):
            raise mistyped("data", "a path of a folder", self.data)
        seeds = (3 if self.full else 1) if self.seeds is None else self.seeds
        claimed = self.claimed or (_QUICK_CLAIMS if self.quick else CLAIMED)
        kept = {
            "data": None if self.data is None else str(Path(self.data)),
            "seeds": integer("seeds", seeds, 1),
            "device": instance("device", self.device, str),
            "claimed": check_list("claimed", claimed, lambda value: positive("claimed", value)),
            "variants": check_list(
                "variants", self.variants, lambda name: choice("variants", name, VARIANTS)
            ),
            "examples": integer("examples", self.examples, 0),
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def text_trials(self) -> int:
        """Rewrites on each side of an audit of texts: each costs as much as ten vectors."""
        return max(_MIN_AUDIT_REWRITES, self.trials // 10)

    @property
    def widths(self) -> tuple[int, ...]:
        """Entries of a state, for each auto-encoder."""
        return _FULL_WIDTHS if self.full else (32,) if self.quick else (128,)


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train the auto-encoders, rewrite under every noise, and audit.

    Args:
        config: what to train, to rewrite and to audit.
        threads: processes, None for all cores; one where the device is not the CPU. They change
            no result: torch has one thread in each.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one row for each corpus, width, variant and claim.

    Raises:
        ModuleNotFoundError: without torch, scikit-learn or sacrebleu; it says what to install.
        FileNotFoundError: if a file of the data is missing.
        ValueError: if there is no such device, or too few texts.
        KeyboardInterrupt: on Ctrl-C before anything was rewritten.

    Source:
        Krishna, Gupta and Dupuy (2021); the fault: Habernal (2021), theorem 1.

    Example:
        >>> run.__name__
        'run'
    """
    require_own_config(config, __name__)
    for package in ("sklearn", "sacrebleu"):
        needed(package, NAME)
    from ...torch.mechanisms import device_of

    device_of(config.device)
    begun = time.perf_counter()
    texts = {one.name: one for one in read_corpora(config)}
    assert config.seeds is not None
    setups = [
        Setup(name, clip, width, number)
        for name in texts
        for width in config.widths
        for number in range(config.seeds)
        for clip in dict.fromkeys(map(clip_of, config.variants))
    ]
    many = threads_of(threads) if config.device == "cpu" else 1
    models, partial = gather_in_processes(
        "training", train_encoder, [(one, texts[one.corpus], config) for one in setups], many,
        progress,
        ended=_cut_short,
    )  # fmt: skip
    if partial:
        raise KeyboardInterrupt
    assert config.claimed is not None
    jobs = [
        (one, texts[one.setup.corpus], variant, claimed, config)
        for variant in config.variants
        for claimed in config.claimed
        for one in models
        if one.setup.clip == clip_of(variant)
    ]
    cells, partial = gather_in_processes(
        "rewriting", rewrite_and_audit, jobs, many, progress, ended=_cut_short
    )
    found: dict[tuple[str, int, str, float], list[Any]] = {}
    for (one, _, variant, claimed, _), cell in zip(jobs, cells, strict=False):
        key = (one.setup.corpus, one.setup.hidden, variant, claimed)
        found.setdefault(key, []).append(cell)
    rows = sorted(
        (Row(*key, tuple(ones)) for key, ones in found.items()),
        key=lambda row: (list(texts).index(row.corpus), row.hidden),
    )
    clean = {
        name: measure_intent_utility(
            [*map(rejoin_words, one.held)], one, config.confidence, config.seed
        )
        for name, one in texts.items()
    }
    kept = tuple(_drop_weights(one) for one in models)
    return Result(
        config, tuple(texts.values()), kept, tuple(rows), clean, partial,
        time.perf_counter() - begun,
    )  # fmt: skip


def _drop_weights(one: Fitted) -> Fitted:
    return Fitted(one.setup, None, *(getattr(one, name) for name in Fitted.__slots__[2:]))


def _cut_short(found: Any) -> bool:
    return bool(found.trained.partial if isinstance(found, Fitted) else found.partial)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The rewrites, row by row.

    Args:
        config: the options of the run.
        texts: the corpora.
        models: the trained auto-encoders, without their weights.
        rows: one for each corpus, width, variant and claim.
        clean: utility of the unchanged texts, by corpus.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    texts: tuple[Texts, ...]
    models: tuple[Fitted, ...]
    rows: tuple[Row, ...]
    clean: dict[str, Utility]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def table(self) -> str:
        """Return the figures as text, the conclusions, and five texts with all rewrites."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw utility against the true epsilon."""
        from .drawing import draw_figure

        return draw_figure(self, ax)
