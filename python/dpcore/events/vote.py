"""The event "a majority of the entries of an output looks like the input x'" (or like x)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import choice, invalid, mistyped, vector
from ..records import Pair, frozen_array, pair_of, set_fields
from ..report.plain import Form, register_codec
from ..suggestions import explain_argument_errors
from . import event

Side = Literal["x_prime", "x"]
SIDES: Final[tuple[Side, ...]] = get_args(Side)
"""The two possible results of a vote."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Vote(event.EventRecord, word="Vote"):
    """Event that most entries of an output vote for the input x', or the complement of this event.

    If ``towards[i]`` is 0, entry i of an output does not vote. If ``towards[i]`` is +1, entry i
    votes for x' if ``output[i] >= threshold[i]``. If ``towards[i]`` is -1, entry i votes for x' if
    ``output[i] <= threshold[i]``. A voting entry that does not meet its condition, or is NaN, votes
    for x. The result is x' if more than half of the voting entries vote for x'. With equally many
    votes for x and x', the result is x.

    Args:
        threshold: threshold of each entry, in the units of the outputs, shape `(dim,)`.
        towards: for each entry: +1 if x' is above x, -1 if x' is below x, 0 if they are equal.
        vote: "x_prime" for the event "the result is x'", "x" for the event "the result is x".

    Raises:
        TypeError: if an array does not hold real numbers, or `vote` is not a string.
        ValueError: if the arrays are not vectors of the same length, if a threshold is not finite,
            if `towards` has other values or only zeros, or if `vote` is neither "x_prime" nor "x".

    Source:
        Habernal (2022), section 4, the reconstruction attack.

    Example:
        >>> vote = Vote.between(Pair([0.0, 0.0], [1.0, 1.0]))
        >>> vote([[0.9, 0.5], [0.9, 0.1]]).tolist()
        [True, False]
        >>> print(vote)
        majority vote for x' (2 of 2 entries vote)
    """

    threshold: npt.NDArray[np.float64]
    towards: npt.NDArray[np.int8]
    vote: Side = "x_prime"

    def __post_init__(self) -> None:
        """Check the arrays, and make them read-only."""
        threshold = vector("threshold", self.threshold)
        towards = vector("towards", self.towards)
        if towards.shape != threshold.shape:
            raise invalid("towards", f"of shape {threshold.shape} like threshold", towards.shape)
        if not np.isin(towards, (-1.0, 0.0, 1.0)).all() or not towards.any():
            raise invalid("towards", "made of -1, 0 and 1 and not all 0", towards)
        choice("vote", self.vote, SIDES)
        towards = frozen_array(towards.astype(np.int8))
        set_fields(self, threshold=frozen_array(threshold), towards=towards)

    @classmethod
    def between(cls, pair: Pair | tuple[Any, Any], vote: Side = "x_prime") -> Vote:
        """Return the majority vote with thresholds in the middle of the inputs x and x'.

        The middle is computed as ``x/2 + x'/2``. This sum cannot overflow. Halving is exact except
        for subnormal numbers. Therefore the result is the correctly rounded middle, such as 0.5 for
        0 and 1.

        Args:
            pair: the inputs x and x', two vectors of finite numbers with the same length.
            vote: "x_prime" for the event "the majority votes for x'", "x" for "the majority votes
                for x".

        Returns:
            The event.

        Raises:
            TypeError: if the pair does not hold real numbers.
            ValueError: if the inputs are not vectors of the same length, are empty, are not finite,
                or are equal in every entry.
        """
        pair = pair_of(pair)
        x, x_prime = vector("x", pair.x), vector("x_prime", pair.x_prime)
        if x.shape != x_prime.shape:
            raise invalid("pair", "two inputs of equal shape", (x.shape, x_prime.shape))
        towards = (x_prime > x).astype(np.int8) - (x_prime < x).astype(np.int8)
        if not towards.any():
            raise invalid("pair", "different in at least one entry", pair)
        # Halves of the smallest numbers are rounded: two equal halves need not add up to the input.
        middle = np.where(x == x_prime, x, x / 2.0 + x_prime / 2.0)
        return cls(middle, towards, vote)

    def __call__(self, outputs: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Return True for each output for which the event happens.

        Args:
            outputs: outputs, shape `(size, dim)`. The shape `(size,)` is also allowed if `dim` is
                1.

        Returns:
            One bool per output, shape `(size,)`.

        Raises:
            TypeError: if the outputs are not real numbers.
            ValueError: if the outputs have the wrong shape.
        """
        values = np.asarray(outputs)
        if values.dtype == object:
            return self._evaluate_on_objects(values, "outputs")
        values = self._rows(values, "outputs")
        beyond = (values >= self.threshold) & (self.towards > 0)
        beyond |= (values <= self.threshold) & (self.towards < 0)
        won: npt.NDArray[np.bool_] = 2 * np.count_nonzero(beyond, axis=1) > self.voting
        return won if self.vote == "x_prime" else ~won

    def _evaluate_on_objects(self, outputs: npt.NDArray[Any], name: str) -> npt.NDArray[np.bool_]:
        """Decide the event for outputs stored as objects; False if an output is not a vector."""
        answers, dim = np.zeros(len(outputs), np.bool_), self.threshold.size
        tables = [
            (places, rows)
            for places, rows in event.group_numeric(outputs)[0]
            if rows.shape[1:] == (dim,) or (dim, rows.ndim) == (1, 1)
        ]
        if not tables and len(outputs) > 1:
            raise mistyped(name, "real numbers", outputs.dtype)
        for places, rows in tables:
            answers[places] = self(rows)
        return answers

    @property
    def voting(self) -> int:
        """Number of voting entries of an output: the entries with different values in x and x'."""
        return int(np.count_nonzero(self.towards))

    @property
    def ballot(self) -> event.Ballot:
        """The data from which compiled code counts this vote while outputs are drawn."""
        return event.Ballot(self.threshold, self.towards, self.vote == "x")

    def midway(self, pair: Pair) -> bool:
        """Return True if all thresholds lie in the middle of the two inputs of the pair."""
        return replace(self, vote="x_prime") == Vote.between(pair)

    def seen(self, outputs: npt.NDArray[Any] | event.Batch, name: str) -> event.Seen:
        """Count the outputs in this event, with compiled code or on the device of the outputs."""
        if isinstance(outputs, event.Batch):
            return self._count_event_on_device(outputs, name)
        if outputs.dtype == object:
            answers = self._evaluate_on_objects(outputs, f"outputs of {name}")
            return event.Seen((event.hits_of(answers),), 0, answers)
        values = np.require(self._rows(outputs, f"outputs of {name}"), np.float64, ("C", "A"))
        votes, nan = _core.count_outputs(values, self.threshold, self.towards)
        return event.Seen((self.ballot.majorities_for_event(votes, len(values)),), nan, None)

    def _rows(self, outputs: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
        """Check outputs, and return them as an array of shape `(size, dim)`."""
        if outputs.dtype.kind not in "buif":
            raise mistyped(name, "real numbers", outputs.dtype)
        self._check_shape(outputs.shape, name)
        return outputs.reshape(len(outputs), self.threshold.size)

    def _check_shape(self, shape: tuple[int, ...], name: str) -> None:
        dim = self.threshold.size
        if shape[1:] != (dim,) and (dim, len(shape)) != (1, 1):
            raise invalid(name, f"of shape (size, {dim})", shape)

    def _count_event_on_device(self, outputs: event.Batch, name: str) -> event.Seen:
        """Count the event on the device of the outputs; copy only one bool per output."""
        self._check_shape(outputs.shape, f"outputs of {name}")
        edges, signs, away = event.cache_per_device(self, outputs, self._edges_signs_and_down_mask)
        # An entry with a downward edge votes for x' unless it is beyond the edge. NaN is not beyond
        # it, but must vote for x.
        beyond, nan = outputs.ones_where_at_least_column_edge(edges), outputs.count_nan_entries()
        votes = beyond.sum(1) if signs is None else beyond @ signs + float(away.sum())
        if nan and signs is not None:
            votes = votes - (outputs.flat.isnan() & away).sum(1)
        won = 2.0 * votes > self.voting
        answers = event.move_to_host(event.Batch(won if self.vote == "x_prime" else ~won))
        return event.Seen((event.hits_of(answers),), nan, answers)

    def _edges_signs_and_down_mask(self, like: Any, name: str) -> tuple[Any, Any, Any]:
        """Return three tensors with one number per entry, for comparisons on a device.

        They hold the threshold (NaN if the entry does not vote), the sign of the vote, and True if
        values below the threshold vote for x'. The signs are None if no values below a
        threshold vote for x'.
        """
        down = self.towards < 0
        edges = np.where(down, np.nextafter(self.threshold, np.inf), self.threshold)
        edges = event.round_up_to_format(np.where(self.towards == 0, np.nan, edges), name)
        signs = None
        if down.any():
            wide = like if like.dtype.itemsize > 2 else like.float()
            signs = wide.new_tensor(np.where(down, -1.0, 1.0).tolist())
        return like.new_tensor(edges.tolist()), signs, like.new_tensor(down.tolist()).bool()

    def __str__(self) -> str:
        """Describe the event in one line of text for a report."""
        side = "x'" if self.vote == "x_prime" else "x"
        return f"majority vote for {side} ({self.voting} of {self.threshold.size} entries vote)"

    def to_dict(self) -> dict[str, Any]:
        """Return this event as a dict of lists and strings that JSON can store.

        Example:
            >>> Vote.between(Pair([0.0], [1.0])).to_dict()
            {'event': 'Vote', 'threshold': [0.5], 'towards': [1], 'vote': 'x_prime'}
        """
        arrays = {"threshold": self.threshold.tolist(), "towards": self.towards.tolist()}
        return {"event": "Vote", **arrays, "vote": self.vote}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Vote:
        """Make the event from a dict that `to_dict` returned.

        Args:
            record: the dict, with the keys "event", "threshold", "towards" and "vote".

        Returns:
            The event.

        Raises:
            ValueError: if a key is missing or unknown, or a value is invalid.
        """
        keys = {"event", "threshold", "towards", "vote"}
        if set(record) != keys:
            raise invalid("record", f"a mapping with the keys {sorted(keys)}", sorted(record))
        choice("event", record["event"], ("Vote",))
        return cls(record["threshold"], record["towards"], record["vote"])


register_codec("event", Form(lambda value: type(value) is Vote, Vote.to_dict, Vote.from_dict))
