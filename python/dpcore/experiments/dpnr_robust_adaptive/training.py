"""The models of the experiment: trained, then tested at every noise. It needs torch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from ...errors import AssumptionWarning
from ...streams.generators import seeded_torch
from ...text import DPNR, Corpus, WordDropout
from ...text.systems import Prepared, Units
from ...text.systems.bag import units_of
from ...text.systems.training import one_thread
from ...torch.needed import torch
from ..running import cell_seed, require_whole
from .cases import LINES
from .jobs import Job, Model, Test

__all__ = ["Bench"]


class Bench:
    """One corpus, its texts cut into words once for each kind of vocabulary.

    Args:
        corpus: with training and test texts.
        config: the experiment's.
    """

    def __init__(self, corpus: Corpus, config: Any) -> None:
        self.test, self._corpus, self._config = corpus.test, corpus, config
        self._kept: dict[tuple[str, bool], tuple[Prepared, Units]] = {}

    def model(self, job: Job) -> Model:
        """Train a model and test it."""
        line, config = LINES[job.line], self._config
        dropout = WordDropout(job.mu, mask=job.mask) if job.mask else None
        claim = config.epsilons[-1] if job.trained is None else job.trained
        model = DPNR(
            job.dim, epsilon=claim, scale=line.scale, unknown=line.unknown, dropout=dropout
        )
        schedule = None if line.schedule is None else line.schedule(claim)
        # One seed for all lines: they begin with equal weights, and see texts in one order.
        key = f"{job.data}/{job.dim}/{job.number}"
        with warnings.catch_warnings(), one_thread():
            # Texts without a known word, and rows of zeros where all words are masked: counted
            # as wrong or right like any other.
            warnings.simplefilter("ignore", AssumptionWarning)
            warnings.simplefilter("ignore", UserWarning)
            ready, units = self._cut(model, (line.unknown, job.mask == "zero_id"))
            model.fit(
                ready, schedule=schedule, pair=False, rng=cell_seed(config.seed, key),
                device=config.device, progress=False,
            )  # fmt: skip
            tests = dict(self._tested(model, units, job, key))
        trained = require_whole(model)
        return Model(job, trained.losses[-1], tests[Test()], tuple(tests.items()))

    def _cut(self, model: DPNR, kind: tuple[str, bool]) -> tuple[Prepared, Units]:
        if kind not in self._kept:
            ready = model.prepare(self._corpus)
            self._kept[kind] = (ready, units_of(ready.vocabulary, self.test.texts))
        return self._kept[kind]

    def _tested(
        self, model: DPNR, units: Units, job: Job, key: str
    ) -> Iterator[tuple[Test, float]]:
        """Yield the accuracies of a model, each with noise and masks seeded by its name alone."""
        for test in job.tests(self._config):
            bag, noise = model.extractor, _noise_of_claim(model, test.epsilon)
            bag.dropout = WordDropout(test.mu, mask=cast(Any, test.mask)) if test.mu else None
            draws = max(1, math.ceil(self._config.trials / len(units))) if test != Test() else 1
            seed = cell_seed(self._config.seed, f"{key}/{test}")
            with torch.no_grad(), seeded_torch(np.random.default_rng(seed)):
                # Masks are drawn anew each time, noise for all rows at once.
                calls = draws if test.mu else 1
                rows = torch.cat([model.transform(bag(units)) for _ in range(calls)])
                sent = noise(rows.repeat(draws // calls, 1))
            found = model.predicted(sent.cpu().numpy())
            yield test, float(np.mean(found == np.tile(self.test.labels, draws)))


def _noise_of_claim(model: DPNR, epsilon: float | None) -> Any:
    """Return the noise of another claim on the same weights; for None add nothing."""
    if epsilon is None:
        return lambda rows: rows
    sender = DPNR(model.dim, epsilon=epsilon, scale=model.scale)
    sender.extractor, sender.head = model.extractor, model.head
    sender.protect()
    assert sender.private is not None
    return sender.private.noise
