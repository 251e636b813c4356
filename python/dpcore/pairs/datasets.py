"""Neighbouring datasets, which differ in one replaced or one added record."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import instance, invalid, mistyped
from ..records import Pair, Record
from ..suggestions import suggest_arguments
from .differences import added_or_removed, differing_places, dimension, inputs_equal, read_records
from .neighbours import Domain
from .text_pairs import Texts


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Records(Record, word="Records"):
    """Domain of datasets with a fixed number of records, each taken from a list of values.

    Args:
        values: possible values of a record. Numbers, texts and all objects that compare with ``==``
            are allowed.
        dim: number of records, at least 1.

    Raises:
        TypeError: if `values` is not a list or tuple, or `dim` not an integer.
        ValueError: if `values` is empty or `dim` below 1.

    Example:
        >>> domain = Records(("yes", "no"), 3)
        >>> domain.contains(("yes", "yes", "no")), domain.contains(("yes", "no"))
        (True, False)
    """

    values: tuple[Any, ...]
    dim: int

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "values", _as_tuple(self.values))
        object.__setattr__(self, "dim", dimension(self.dim))

    def draw(self, rng: np.random.Generator) -> tuple[Any, ...]:
        """Draw a dataset of independent, uniformly drawn records, as a tuple."""
        instance("rng", rng, np.random.Generator)
        return tuple(self.values[place] for place in rng.integers(len(self.values), size=self.dim))

    def contains(self, x: Any) -> bool:
        """Return True if x is a sequence of `dim` records, each equal to one of the values."""
        is_sequence = isinstance(x, Sequence) or (isinstance(x, np.ndarray) and x.ndim > 0)
        if not is_sequence or isinstance(x, str) or len(x) != self.dim:
            return False
        records: Iterable[Any] = x
        if isinstance(x, np.ndarray) and x.dtype.kind in "biuf":
            records = x.tolist()
        # Equal numbers and texts have equal hashes. Only the remaining records are compared singly.
        try:
            records = set(records) - set(self.values)
        except TypeError:
            identities = set(map(id, self.values))
            records = [record for record in x if id(record) not in identities]
        return all(any(inputs_equal(record, value) for value in self.values) for record in records)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _RecordRelation(Record):
    """Base class of `Replace` and `AddRemove`, with the values that a record may take."""

    values: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        if self.values is not None:
            object.__setattr__(self, "values", _as_tuple(self.values))

    most: ClassVar[float] = 1
    limit: ClassVar[str]
    replaced: ClassVar[int]
    """Number of records that the new record of a neighbour replaces: 1, or 0 if it is added."""

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if the two datasets lie in the domain and are neighbours."""
        raise NotImplementedError

    def starts(self, domain: Domain, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield pairs that differ in one record: of repeated records first, then random datasets.

        Args:
            domain: domain of the datasets.
            rng: generator that draws datasets and records.

        Returns:
            An iterator of pairs, without end. For texts, one word of each text is changed, and the
            words come from the corpus.

        Raises:
            ValueError: if `values` are given for texts. The words of texts come from the corpus.
        """
        if isinstance(domain, Texts):
            if self.values is not None:
                requirement = "None for texts, whose words are those of the corpus"
                raise invalid("values", requirement, self.values)
            yield from domain.starts(rng)
            return
        for record in self.values or ():
            x = _make_constant_dataset(domain.draw(rng), record)
            yield from (Pair(x, self._replace_record(x, 0, other)) for other in self.values or ())
        while True:
            x = domain.draw(rng)
            place = int(rng.integers(len(x) + 1 - self.replaced))
            yield Pair(x, self._replace_record(x, place, self._record(domain, rng)))

    def move(self, pair: Pair, domain: Domain, rng: np.random.Generator) -> Pair:
        """Change a record that both datasets share, or the one in which they differ.

        Args:
            pair: pair from which the move starts.
            domain: domain of the datasets.
            rng: generator that chooses the move.

        Returns:
            The new pair.
        """
        if isinstance(domain, Texts):
            return domain.move(pair, rng)
        x, x_prime = sorted((pair.x, pair.x_prime), key=len)
        own = self._record(domain, rng)
        place = min(_first_difference(x, x_prime), len(x_prime) - 1)
        kind = rng.integers(4)
        if kind < 2:
            place = int(rng.integers(len(x) + 1 - self.replaced)) if kind else place
            return Pair(x, self._replace_record(x, place, own))
        if kind == 2:
            x = _insert_record(x, int(rng.integers(len(x))), own)
        else:
            x = _make_constant_dataset(x, own)
        return Pair(x, self._replace_record(x, place, x_prime[place]))

    def _replace_record(self, x: Any, place: int, record: Any) -> Any:
        """Return the neighbour of x that has the given record at the given place."""
        return _join_records(x, place, place + self.replaced, [record])

    def _record(self, domain: Domain, rng: np.random.Generator) -> Any:
        """Draw a record: one of the values, or else a record of a dataset that the domain draws."""
        if self.values is not None:
            return self.values[int(rng.integers(len(self.values)))]
        x = domain.draw(rng)
        return x[int(rng.integers(len(x)))]


@suggest_arguments
class Replace(_RecordRelation, word="Replace"):
    """Neighbour relation: same number of records, and exactly one record differs.

    Args:
        values: records that a search may put in the place of another record. If None, records come
            from datasets that the domain draws.

    Raises:
        TypeError: if `values` is not a list or tuple.
        ValueError: if `values` is empty.

    Source:
        Dwork and Roth (2014), section 2.3; "bounded" in Kifer and Machanavajjhala (2011).

    Example:
        >>> Replace().holds(Pair(("a", "b"), ("a", "c")), Records(("a", "b", "c"), 2))
        True
        >>> Replace().holds(Pair(("a", "b"), ("b", "c")), Records(("a", "b", "c"), 2))
        False
    """

    __slots__ = ()
    limit = "two data sets of which at most 1 record is replaced"
    replaced = 1

    def apart(self, pair: Pair) -> float:
        """Count the places in which the two datasets differ.

        Raises:
            TypeError: if the inputs do not consist of records (see `dpcore.pairs.distances`).
            ValueError: if the two datasets have different numbers of records.
        """
        first, second = _records_of_pair(pair)
        if len(first) != len(second):
            requirement = "two data sets of one size, as Replace() has them"
            raise invalid("pair", requirement, (len(first), len(second)))
        return len(differing_places(first, second))

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if both datasets lie in the domain and differ in exactly one record."""
        inside = domain.contains(pair.x) and domain.contains(pair.x_prime)
        if isinstance(domain, Texts):
            return inside and _count_words_apart(pair, self) == 1
        return inside and len(differing_places(pair.x, pair.x_prime)) == 1


@suggest_arguments
class AddRemove(_RecordRelation, word="AddRemove"):
    """Neighbour relation: one dataset has one additional record, at any place.

    The order of the other records is the same in the two datasets.

    Args:
        values: records that a search may add. If None, records come from datasets that the domain
            draws.

    Raises:
        TypeError: if `values` is not a list or tuple.
        ValueError: if `values` is empty.

    Source:
        Dwork and Roth (2014), section 2.3; "unbounded" in Kifer and Machanavajjhala (2011).

    Example:
        >>> AddRemove().holds(Pair(("a", "b"), ("a", "c", "b")), Records(("a", "b", "c"), 2))
        True
    """

    __slots__ = ()
    limit = "two data sets of which one has at most 1 record more, the others in the same order"
    replaced = 0

    def apart(self, pair: Pair) -> float:
        """Count the records to add or remove to turn one dataset into the other; inf if above 200.

        Raises:
            TypeError: if the inputs do not consist of records (see `dpcore.pairs.distances`).
        """
        return added_or_removed(*_records_of_pair(pair))

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if adding one record turns one dataset, in the domain, into the other.

        The added record belongs to the domain if it could replace another record there.
        """
        if isinstance(domain, Texts):
            inside = domain.contains(pair.x) and domain.contains(pair.x_prime)
            return inside and _count_words_apart(pair, self) == 1
        short, long = sorted((pair.x, pair.x_prime), key=len)
        if not domain.contains(short) or len(long) != len(short) + 1:
            return False
        place = _first_difference(short, long)
        if differing_places(short, _remove_record(long, place)):
            return False
        return domain.contains(_remove_record(long, 0 if place else len(long) - 1))


def _count_words_apart(pair: Pair, relation: Replace | AddRemove) -> float:
    """Count the words by which two texts differ under a relation; inf if it cannot compare them."""
    first, second = pair.x.split(), pair.x_prime.split()
    if isinstance(relation, Replace) and len(first) != len(second):
        return math.inf
    return relation.apart(Pair(first, second))


def _as_tuple(values: Any) -> tuple[Any, ...]:
    if not isinstance(values, (list, tuple)):
        raise mistyped("values", "a list or tuple of records", values)
    if not values:
        raise invalid("values", "at least one record", values)
    return tuple(values)


def _records_of_pair(pair: Pair) -> tuple[list[Any], list[Any]]:
    parts = read_records(pair)
    if parts is None:
        raise mistyped("pair", "two data sets: lists, arrays or texts", (pair.x, pair.x_prime))
    return parts[1], parts[2]


def _first_difference(first: Any, second: Any) -> int:
    """Find the first place at which two datasets differ, or the end of the shorter one."""
    return next(iter(differing_places(first, second)), min(len(first), len(second)))


def _join_records(x: Any, stop: int, start: int, records: Sequence[Any]) -> Any:
    """Join the records of x before `stop`, the given records, and those of x from `start` on.

    The result has the type of x.
    """
    if not isinstance(x, np.ndarray):
        joined = [*x[:stop], *records, *x[start:]]
        return joined if isinstance(x, list) else tuple(joined)
    array = np.concatenate([x[:stop], *(np.asarray([record]) for record in records), x[start:]])
    if array.dtype == x.dtype:
        return array
    # A record of another type widens the type of the array only if it has to.
    with np.errstate(invalid="ignore"):
        narrow = array.astype(x.dtype)
    return narrow if np.array_equal(narrow, array) else array


def _insert_record(x: Any, place: int, record: Any) -> Any:
    return _join_records(x, place, place + 1, [record])


def _remove_record(x: Any, place: int) -> Any:
    return _join_records(x, place, place + 1, [])


def _make_constant_dataset(x: Any, record: Any) -> Any:
    """Return a dataset of the length of x that repeats one record."""
    return _join_records(x, 0, len(x), [record] * len(x))


def input_key(value: Any) -> Hashable:
    """Return a hashable key of an input: type, shape and bytes of an array, or else its repr."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value)
