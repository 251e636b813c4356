"""Result of an audit: the counts, the figures from them, and the merge of two audits."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import exact
from ..bounds import Band, mu_lower
from ..errors import delta_level, instance, invalid, mistyped
from ..events import event_of
from ..mechanisms.declarations import mechanism_attribute, name_of
from ..published import is_native
from ..records import Counts, one_line
from ..sampling.driver import unite_ranges
from ..sampling.rows import blocks_apart
from . import certificate
from .evidence import (
    Evidence,
    format_verdict,
    merge_together,
    merging_of,
    per_distance,
    require_equal,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Audit(Evidence):  # noqa: D101 - the fields say what it is
    __doc__ = Evidence.__doc__

    if not TYPE_CHECKING:  # for mypy every name would be an attribute

        def __getattr__(self, name):
            """Raise an error that names what was meant; any other is the usual one."""
            if name == "summary":
                raise AttributeError("an audit has no attribute 'summary': print(report)")
            if name == "epsilon":
                meant = "epsilon_lower, epsilon_hat or claim"
                raise AttributeError(f"an audit has no attribute 'epsilon': {meant}")
            return object.__getattribute__(self, name)

    @property
    def epsilon_lower(self) -> float:
        """Certified lower bound on epsilon, at `confidence`; 0 if `checks` is not empty.

        Per unit of `pair.distance` when delta is 0; for delta > 0 a bound is never divided.
        """
        return per_distance(certificate.certified_bound(self), self.delta, self.pair.distance)

    def epsilon_lower_at(self, delta: float) -> float:
        """Compute the certified lower bound on epsilon at another delta, from the same counts.

        With Clopper-Pearson limits the bounds for all delta hold at once: they follow from one
        pair of limits. Any other bound holds for each delta by itself. With `floats` the
        floating-point finding counts here as it does in `epsilon_lower`.

        Args:
            delta: in [0, 1).

        Returns:
            The bound, at least 0; per unit of `pair.distance` at delta 0.

        Raises:
            TypeError: if `delta` is not a number.
            ValueError: if it is out of range, or the audit's bound has no form for it.

        Example:
            >>> import dpcore
            >>> report = dpcore.audit(dpcore.Laplace(0.5), trials=10**5, claim=1.0, rng=1)
            >>> round(report.epsilon_lower, 2), round(report.epsilon_lower_at(0.1), 2)
            (1.96, 1.76)
        """
        delta = delta_level(delta)
        return per_distance(certificate.certified_at(self, delta), delta, self.pair.distance)

    @property
    def mu_lower(self) -> float:
        """Certified lower bound on mu of Gaussian differential privacy, from the event alone.

        It holds at `confidence` by itself, not jointly with what else is certified.
        A ValueError unless n was fixed in advance, or where `checks` is not empty.
        """
        return mu_lower(certificate.require_fixed_size(self).bound_counts, self.confidence)

    @property
    def parameter_lower(self) -> float | None:
        """Certified lower bound on mu of a `claims.GDP`, on rho of a `claims.ZCDP`; else None.

        It is the largest that is refuted, and not above 0 where none is.
        """
        return certificate.parameter_lower(self)

    @property
    def point(self) -> tuple[float, float, float] | None:
        """Type I error, type II error, and the least type II error that the claim allows there.

        Upper limits for the event counted, jointly at `confidence`. None unless the claim is a
        curve that is tested as a whole, with bound "clopper_pearson".
        """
        if not certificate.is_curve_test(self) or self.checks:
            return None
        one, two = certificate.curve_points(self)[0]
        return one, two, self.claim.trade_off(one)  # type: ignore[union-attr]

    @property
    def tradeoff(self) -> Band:
        """The upper confidence band on the trade-off function, from the event's score.

        It holds at `confidence` as a whole and by itself, not jointly with `epsilon_lower`.
        A ValueError if the event is no threshold on a score, or as for `mu_lower`.
        """
        return certificate.confidence_band(certificate.require_fixed_size(self))

    @property
    def power(self) -> str:
        """Sentence on what this event would have refuted; empty without such a statement.

        It speaks of the event that was counted, never of events that were not tried.
        """
        return certificate.power_sentence(self)

    @property
    def epsilon_hat(self) -> float:
        """The empirical loss (Habernal, 2022, eq. 12): a point estimate, certifies nothing.

        The larger of abs(ln(k/k')) and abs(ln((n-k)/(n'-k'))), inf if one side's cell is empty;
        where coordinates are pooled, the sum of their log ratios.
        """
        return per_distance(certificate.empirical_loss(self), self.delta, self.pair.distance)

    @property
    def exact(self) -> float | None:
        """The closed form of the loss that the majority vote sees, or None without one.

        An oracle in real numbers, printed with the audit, never in place of it.
        """
        if not is_native(self.mechanism) or not event_of(self.event).midway(self.pair):
            return None
        loss = exact.vote_loss(self.mechanism, self.pair)
        return loss if loss is None or self.delta else loss / self.pair.distance

    @property
    def refuted(self) -> bool | None:
        """True if the bound exceeds the claim, False if not, None without a claim or a bound.

        No bound holds where `checks` is not empty.
        """
        return certificate.is_refuted(self)

    @property
    def verdict(self) -> str:
        """The outcome in words; never that a mechanism is private."""
        return format_verdict(self.refuted, self.checks)

    @property
    def own_claim(self) -> float | None:
        """Epsilon that the mechanism itself claims, if it states one."""
        own = mechanism_attribute(self.mechanism, "claim")
        return float(own) if isinstance(own, (int, float, np.integer, np.floating)) else None

    @property
    def name(self) -> str:
        """Name of the mechanism in reports."""
        if isinstance(self.mechanism, str):
            return self.mechanism
        return repr(self.mechanism) if is_native(self.mechanism) else name_of(self.mechanism)

    @property
    def trials(self) -> int:
        """Counted draws on each side."""
        return self.counts.n

    @property
    def elements(self) -> int:
        """Numbers in one output."""
        return math.prod(self.shape)

    @property
    def draws_per_second(self) -> float:
        """Noisy numbers counted a second, both sides together."""
        draws = (self.counts.n + self.counts.n_prime) * self.elements
        return draws / self.seconds if self.seconds > 0 else math.nan

    def outputs(self, side: str, start: int, size: int) -> npt.NDArray[Any]:
        """Draw the counted outputs again, exactly (up to rounding if `randomness` says so).

        Args:
            side: "x" or "x_prime".
            start: first trial.
            size: number of trials.

        Returns:
            Outputs of the trials `start .. start + size`, shape `(size, ...)`.

        Raises:
            TypeError: if an argument is of the wrong kind, or the mechanism is only a name.
            ValueError: if the trials were not counted by this audit, or its mechanism draws its
                own randomness, which the seed does not repeat.

        Example:
            >>> import dpcore
            >>> report = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
            >>> drawn = report.outputs("x", 0, 1000)
            >>> int(report.event(drawn).sum()) == report.counts.k
            True
        """
        from ..auditing.run import drawn_again

        return drawn_again(self, side, start, size)

    def __add__(self, other: object) -> Audit:
        """Return the audit of both ranges of trials.

        Mechanism, pair, event, direction, seed, block, claim, delta and confidence must be equal,
        the ranges disjoint, and those of a callable must end on a block.

        The sizes must be fixed in advance: looking at the verdict after each merge and stopping
        when it pleases overclaims (at a nominal 10 % and 60 looks, 11.5 % of audits of a true
        claim were refuted, against 1.8 % at one look).

        Raises:
            ValueError: if the audits differ in more than their trials, or their trials overlap.
        """
        return add_audits(self, other)

    def merge(self, other: Audit, *, looked: bool = False) -> Audit:
        """Return the audit of both ranges of trials; state if it was decided after looking.

        Args:
            other: an audit that differs in its trials only.
            looked: True if the verdict of a part was known when the other was asked for, or the
                number of parts depends on it: the result then carries the anytime bound alone.

        Returns:
            The audit.

        Raises:
            TypeError: if `other` is not an audit.
            ValueError: if the audits differ in more than their trials, or their trials overlap.

        Example:
            >>> import dpcore
            >>> parts = [
            ...     dpcore.audit(dpcore.Laplace(1.0), trials=10**4, start=start, claim=1.0, rng=1)
            ...     for start in (0, 10**4)
            ... ]
            >>> parts[0].merge(parts[1], looked=True).bound
            'anytime'
        """
        return merge_audits(self, other, looked)

    def __repr__(self) -> str:
        """Return one line: the name of the mechanism and the result."""
        bound = "" if self.checks else f", epsilon_lower={self.epsilon_lower:.6g}"
        found = one_line(self.verdict, 60) + bound
        return f"<Audit of {one_line(self.name, 60)}: {found}, seed={self.seed}>"

    def __str__(self) -> str:
        """Return the report; its last line holds time and speed."""
        from ..report.text import format_report

        return format_report(self)

    def _repr_html_(self) -> str:
        from ..report.text import report_to_html

        return report_to_html(self)

    def plot_tradeoff(self, ax: Any = None) -> Figure:
        """Plot `tradeoff`, the type II against the type I error, with matplotlib; see `plot`."""
        from ..report.figures import tradeoff_figure

        return tradeoff_figure(self, ax)

    def plot_profile(self, ax: Any = None) -> Figure:
        """Plot the certified profile, delta against epsilon, with matplotlib; see `plot`."""
        from ..report.figures import profile_figure

        return profile_figure(self, ax)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return one page with the whole report; also write it to the file `path` if given.

        Raises:
            OSError: if the file cannot be written.
        """
        from ..report.page import make_page

        return make_page(self, path)

    def plot(self, ax: Any = None) -> Figure:
        """Plot certified bound, estimate, closed form and claim on one axis, in the current style.

        Args:
            ax: matplotlib axes to draw on; None makes a figure of pyplot, for `plt.show()`.

        Returns:
            The matplotlib figure.

        Raises:
            TypeError: if `ax` is no axes.
        """
        from ..report.figures import draw_bounds

        return draw_bounds(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data, for `from_dict`, and the figures derived from them."""
        from ..report.encoding import audit_to_dict

        return audit_to_dict(self)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Audit:
        """Make the audit that `to_dict` wrote; derived figures are computed again, not read.

        Raises:
            TypeError: if the record is not a mapping.
            ValueError: if it is not of that form.
        """
        from ..report.encoding import audit_from_dict

        return audit_from_dict(cls, record)


def add_audits(first: Audit, second: object) -> Audit:
    """Merge two audits of different trials, the sizes being fixed in advance."""
    if not isinstance(second, Audit):
        return NotImplemented  # type: ignore[no-any-return]
    return _merge_fields(first, second, "fixed")


def merge_audits(first: Audit, second: Audit, looked: bool) -> Audit:
    """Merge two audits of different trials.

    Args:
        first: an audit.
        second: one of other trials.
        looked: whether it was decided to merge after looking.

    Returns:
        The audit; unless all was fixed in advance its bound is the anytime one.

    Raises:
        TypeError: if `second` is not an audit.
        ValueError: if the audits differ in more than their trials, or their trials overlap.
    """
    if not isinstance(second, Audit):
        raise mistyped("other", "an Audit", second)
    return _merge_fields(first, second, "looked" if instance("looked", looked, bool) else "fixed")


def _merge_fields(first: Audit, second: Audit, stop: str) -> Audit:
    rules = {field.name: merging_of(field) for field in fields(first)}
    for name in (name for name, rule in rules.items() if rule is require_equal):
        mine, theirs = getattr(first, name), getattr(second, name)
        if mine != theirs:
            raise invalid(f"{name} of the second audit", f"{mine!r} as in the first", theirs)
    values = _merge_dependent_fields(first, second, stop)
    # What could be kept of either is kept of the earlier trials, whatever was found.
    early, late = sorted((first, second), key=lambda audit: audit.ranges)
    for name, rule in rules.items():
        if rule not in (require_equal, merge_together):
            values[name] = rule(getattr(early, name), getattr(late, name))
    return replace(first, **values)


def _merge_dependent_fields(first: Audit, second: Audit, stop: str) -> dict[str, Any]:
    """Compute the fields that follow from several fields of both audits."""
    if first.slices or second.slices:
        raise invalid("audits", "without early stop, to be added", first.stop)
    ranges = unite_ranges(first.ranges, second.ranges)
    if first.route == "callable":
        _check_block_ends(first, second)
    if same := set(first.digests) & set(second.digests):
        requirement = "drawn anew, and not those of the first"
        raise invalid("outputs of the second audit", requirement, f"{len(same)} equal blocks")
    stops = {stop, first.stop, second.stop} - {"fixed"}
    if not stops and first.bound != second.bound:
        requirement = f"{first.bound!r} as in the first"
        raise invalid("bound of the second audit", requirement, second.bound)
    early, late = sorted((first, second), key=lambda audit: audit.ranges)
    pooled = first.pooled and second.pooled and not stops
    return {
        "ranges": ranges,
        # Of a run that Ctrl-C cut short, the end was never reached and shortened no block.
        "end": max(first, second, key=lambda audit: audit.ranges[-1]).end,
        "stop": min(stops) if stops else "fixed",
        "bound": "anytime" if stops else first.bound,
        "pooled": tuple(map(Counts.__add__, first.pooled, second.pooled)) if pooled else (),
        "slices": (),
        "checks": tuple(
            dict.fromkeys(early.checks + late.checks + _describe_difference(early, late))
        ),
        "notes": tuple(dict.fromkeys(early.notes + late.notes)),
    }


def _describe_difference(first: Audit, second: Audit) -> tuple[str, ...]:
    """Describe evidence that the counts of one event in two audits follow different laws.

    Rows of the compiled core need no check.
    """
    if first.route != "callable":
        return ()
    one, other = first.counts, second.counts
    sides = [(one.n, one.k), (other.n, other.k)], [(c.n_prime, c.k_prime) for c in (one, other)]
    return blocks_apart(sides)


def _check_block_ends(first: Audit, second: Audit) -> None:
    # A callable's short last block need not be a prefix of the whole one.
    last = max(first.ranges[-1][1], second.ranges[-1][1])
    for stop in (stop for one in (first, second) for _, stop in one.ranges):
        if stop % first.block and stop != last:
            requirement = f"a multiple of block = {first.block} for a Python callable"
            raise invalid("end of a range of trials", requirement, stop)
