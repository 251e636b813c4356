"""Messages of wrong calls of `dpcore.training`: the argument, and a word of the remedy."""

import warnings

import numpy as np
from shared_messages import check_messages

import dpcore
from dpcore import training

CANARIES = np.eye(300)
RECORDS = np.zeros((50, 300))
ROWS = np.random.default_rng(20).normal(size=(12, 3))


def refuse_training(records):
    raise AssertionError("trained")


def audit(fit=refuse_training, **options):
    options = {"canaries": CANARIES, "guesses": 60, "delta": 1e-5, "rng": 1} | options

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpcore.AssumptionWarning)
            training.audit_run(fit, RECORDS, **options)

    return run


def draw_sum(records, rng):
    return np.sum(records, axis=0) + rng.normal(size=3)


def audit_step(step=draw_sum, records=ROWS, **options):
    return lambda: training.audit_step(step, records, **{"sigma": 1.0, "clip": 1.0, **options})


VALUE_ERRORS = [
    # The audit of one run: coins, guesses, what is said before the training, and comparisons.
    (audit(lambda records: lambda asked: np.full(300, np.nan)), "losses", "numbers that"),
    (audit(lambda records: lambda asked: np.zeros(300)), "losses", "different for some"),
    (audit(lambda records: lambda asked: np.zeros(299)), "losses", "one for each canary"),
    (audit(canaries=CANARIES[:1]), "canaries", "2 records or more"),
    (audit(canaries=CANARIES[:, :9]), "records", "of shape"),
    (audit(guesses=301), "guesses", "an integer from 1 to 300"),
    (audit(claim=-1.0), "claim", "at least 0"),
    (audit(bound="exact"), "bound", "one of"),
    # Processes for many trainings: one thread each, prepared once, the same counts.
    (lambda: training.make_pool(0), "processes", "an integer at least 1"),
    # The audit of one step.
    (audit_step(sigma=0.0), "sigma", "a finite number above 0"),
    (audit_step(clip=0.0), "clip", "a finite number above 0"),
    (audit_step(left_out=12), "left_out", "an integer from 0 to 11"),
    (audit_step(records=ROWS[:1]), "records", "2 records or more"),
    (audit_step(lambda records, rng: np.array([1.0, np.nan])), "step(records, rng)",
     "finite numbers"),
    (audit_step(lambda records, rng: rng.normal(size=len(records)), left_out=0),
     "step(records, rng)", "tensors of"),
]  # fmt: skip
TYPE_ERRORS = [
    # The audit of one run: coins, guesses, what is said before the training, and comparisons.
    (audit(lambda records: lambda asked: ["a"] * 300), "losses", "one number for each"),
    (audit(lambda records: None), "fit(records)", "a function"),
    (audit(canaries="text"), "canaries", "a list of records"),
    (audit(canaries=CANARIES.tolist()), "records", "of one kind"),
    (audit(fit_without_noise=3), "fit_without_noise", "a function"),
    # Processes for many trainings: one thread each, prepared once, the same counts.
    (lambda: training.make_pool(1, 3), "prepare", "a function without arguments or None"),
    # The audit of one step.
    (audit_step(records=(ROWS, ROWS)), "records", "a list of records"),
    (audit_step(records="text"), "records", "a list"),
    (audit_step(lambda records, rng: "sum"), "step(records, rng)", "a sum of gradients"),
    *((audit_step(**{name: 1.0}), "", "(the claim of one step is GDP(1/sigma), without a delta)")
      for name in ("claim", "epsilon")),
    (audit_step(noise_multiplier=1.0), "", "(did you mean 'sigma'?)"),
    (audit_step(max_grad_norm=1.0), "", "(did you mean 'clip'?)"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
