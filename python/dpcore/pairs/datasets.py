"""Neighbouring datasets: one record is replaced, or one record is added."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import instance, invalid, mistyped
from ..records import Pair, Record
from ..suggestions import explain_argument_errors
from .differences import add_remove_count, differing_places, dimension, inputs_equal, units_of_pair
from .neighbours import Domain
from .text_pairs import Texts


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Records(Record, word="Records"):
    """Set of all datasets with `dim` records, where each record is one of the given values.

    A search looks for two neighbouring datasets in this set.

    Args:
        values: the possible values of a record, such as ("yes", "no"). Objects of any type are
            allowed if Python can compare them by ``==``.
        dim: number of records of a dataset, at least 1.

    Raises:
        TypeError: if `values` is not a list or tuple, or if `dim` is not an integer.
        ValueError: if `values` is empty, or if `dim` is below 1.

    Example:
        >>> domain = Records(("yes", "no"), 3)
        >>> domain.contains(("yes", "yes", "no")), domain.contains(("yes", "no"))
        (True, False)
    """

    values: tuple[Any, ...]
    dim: int

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "values", _checked_tuple_of_records(self.values))
        object.__setattr__(self, "dim", dimension(self.dim))

    def draw(self, rng: np.random.Generator) -> tuple[Any, ...]:
        """Draw a random dataset from this set, as a tuple of `dim` records.

        Each record is drawn from `values` with equal probabilities, independently of the other
        records.
        """
        instance("rng", rng, np.random.Generator)
        return tuple(self.values[place] for place in rng.integers(len(self.values), size=self.dim))

    def contains(self, x: Any) -> bool:
        """Return True if the dataset x belongs to this set.

        The dataset belongs to the set if x is a sequence of `dim` records that are all in `values`.
        """
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
    """Base class of the neighbour relations `Replace` and `AddRemove`."""

    values: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        if self.values is not None:
            object.__setattr__(self, "values", _checked_tuple_of_records(self.values))

    most: ClassVar[float] = 1
    limit: ClassVar[str]
    replaced: ClassVar[int]
    """1 if neighbours differ by a replaced record, 0 if they differ by an added record."""

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if the two datasets are neighbours and belong to the domain."""
        raise NotImplementedError

    def starts(self, domain: Domain, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield pairs of datasets that differ in one record, without end.

        In the first pairs, one of the datasets repeats a single record. In all later pairs, the
        first dataset is drawn at random.

        Args:
            domain: set of datasets, such as `Records`, or of texts, `Texts`.
            rng: generator that draws datasets and records.

        Returns:
            An iterator of pairs. For `Texts`, the two texts of a pair differ in one word, and all
            words occur in the corpus.

        Raises:
            ValueError: if the relation has `values` and the domain is `Texts`, whose words come
                from the corpus.
        """
        if isinstance(domain, Texts):
            if self.values is not None:
                requirement = "None for texts, whose words are those of the corpus"
                raise invalid("values", requirement, self.values)
            yield from domain.starts(rng)
            return
        for record in self.values or ():
            x = _make_constant_dataset(domain.draw(rng), record)
            yield from (Pair(x, self._make_neighbour(x, 0, other)) for other in self.values or ())
        while True:
            x = domain.draw(rng)
            place = int(rng.integers(len(x) + 1 - self.replaced))
            yield Pair(x, self._make_neighbour(x, place, self._draw_record(domain, rng)))

    def move(self, pair: Pair, domain: Domain, rng: np.random.Generator) -> Pair:
        """Return a random pair that is similar to a given pair of neighbours.

        The function draws a record, and chooses one of four changes at random:

        - The drawn record is put at the place where the two datasets differ.
        - The drawn record is put at a random place, as the only difference of the two datasets.
        - The drawn record replaces a random record of the shorter dataset.
        - All records that the two datasets share are replaced by the drawn record.

        Args:
            pair: the given pair.
            domain: set of datasets, such as `Records`, or of texts, `Texts`.
            rng: generator that chooses the change.

        Returns:
            The new pair.
        """
        if isinstance(domain, Texts):
            return domain.move(pair, rng)
        x, x_prime = sorted((pair.x, pair.x_prime), key=len)
        own = self._draw_record(domain, rng)
        place = min(_first_difference(x, x_prime), len(x_prime) - 1)
        kind = rng.integers(4)
        if kind < 2:
            place = int(rng.integers(len(x) + 1 - self.replaced)) if kind else place
            return Pair(x, self._make_neighbour(x, place, own))
        if kind == 2:
            x = _overwrite_record(x, int(rng.integers(len(x))), own)
        else:
            x = _make_constant_dataset(x, own)
        return Pair(x, self._make_neighbour(x, place, x_prime[place]))

    def _make_neighbour(self, x: Any, place: int, record: Any) -> Any:
        """Return the neighbour of the dataset x that has `record` at index `place`."""
        return _replace_slice(x, place, place + self.replaced, [record])

    def _draw_record(self, domain: Domain, rng: np.random.Generator) -> Any:
        """Draw a record from the field `values`, or from a random dataset if `values` is None."""
        if self.values is not None:
            return self.values[int(rng.integers(len(self.values)))]
        x = domain.draw(rng)
        return x[int(rng.integers(len(x)))]


@explain_argument_errors
class Replace(_RecordRelation, word="Replace"):
    """Neighbour relation: two datasets have equal numbers of records and differ in one record.

    Args:
        values: records that a search for neighbours may put in the place of another record. None
            means that the search takes these records from random datasets.

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
        """Count the positions at which two datasets of equal length have different records.

        Raises:
            TypeError: if an input is not a list, a tuple, an array, a number, a text or bytes.
            ValueError: if the two datasets have different numbers of records.
        """
        first, second = _records_of_pair(pair)
        if len(first) != len(second):
            requirement = "two data sets of one size, as Replace() has them"
            raise invalid("pair", requirement, (len(first), len(second)))
        return len(differing_places(first, second))

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if two datasets are in the set `domain` and differ in exactly one record.

        For texts, the records are the words.
        """
        inside = domain.contains(pair.x) and domain.contains(pair.x_prime)
        if isinstance(domain, Texts):
            return inside and _count_words_apart(pair, self) == 1
        return inside and len(differing_places(pair.x, pair.x_prime)) == 1


@explain_argument_errors
class AddRemove(_RecordRelation, word="AddRemove"):
    """Neighbour relation: one dataset becomes the other dataset if one record is added.

    The additional record may be at any position. All other records of the two datasets are equal
    and in the same order.

    Args:
        values: records that a search for neighbours may add to a dataset. None means that the
            search takes these records from random datasets.

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
        """Count how many records must be added or removed to turn one dataset into the other.

        The result is the smallest possible number. If it is above 200, the result is inf.

        Raises:
            TypeError: if an input is not a list, a tuple, an array, a number, a text or bytes.
        """
        return add_remove_count(*_records_of_pair(pair))

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if one dataset has one additional record, and both fit the set `domain`.

        The longer dataset must be equal to the shorter dataset with one record added at any
        position.

        All datasets in `domain` have equal lengths. Therefore only the shorter dataset must belong
        to `domain`. The longer dataset must belong to `domain` after its first record is removed.
        If the first record is the added record, the last record is removed instead. For texts, the
        records are the words, and both texts must belong to `domain`.
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
    """Count the words that must change to turn the first text of a pair into the second text.

    If the relation is `Replace`, changed words are replaced. The result is inf if the texts have
    different numbers of words. If the relation is `AddRemove`, words are added or removed.
    """
    first, second = pair.x.split(), pair.x_prime.split()
    if isinstance(relation, Replace) and len(first) != len(second):
        return math.inf
    return relation.apart(Pair(first, second))


def _checked_tuple_of_records(values: Any) -> tuple[Any, ...]:
    if not isinstance(values, (list, tuple)):
        raise mistyped("values", "a list or tuple of records", values)
    if not values:
        raise invalid("values", "at least one record", values)
    return tuple(values)


def _records_of_pair(pair: Pair) -> tuple[list[Any], list[Any]]:
    parts = units_of_pair(pair)
    if parts is None:
        raise mistyped("pair", "two data sets: lists, arrays or texts", (pair.x, pair.x_prime))
    return parts[1], parts[2]


def _first_difference(first: Any, second: Any) -> int:
    """Return the index of the first record that differs in two datasets.

    If all common records are equal, the result is the length of the shorter dataset.
    """
    return next(iter(differing_places(first, second)), min(len(first), len(second)))


def _replace_slice(x: Any, begin: int, end: int, records: Sequence[Any]) -> Any:
    """Return a dataset like x: ``x[:begin]``, then `records`, then ``x[end:]``.

    The result has the same type as x: list, tuple or array.
    """
    if not isinstance(x, np.ndarray):
        joined = [*x[:begin], *records, *x[end:]]
        return joined if isinstance(x, list) else tuple(joined)
    array = np.concatenate([x[:begin], *(np.asarray([record]) for record in records), x[end:]])
    if array.dtype == x.dtype:
        return array
    # A record of another type widens the type of the array only if it has to.
    with np.errstate(invalid="ignore"):
        narrow = array.astype(x.dtype)
    return narrow if np.array_equal(narrow, array) else array


def _overwrite_record(x: Any, place: int, record: Any) -> Any:
    return _replace_slice(x, place, place + 1, [record])


def _remove_record(x: Any, place: int) -> Any:
    return _replace_slice(x, place, place + 1, [])


def _make_constant_dataset(x: Any, record: Any) -> Any:
    """Return a dataset that has as many records as x, all of them equal to `record`."""
    return _replace_slice(x, 0, len(x), [record] * len(x))


def input_key(value: Any) -> Hashable:
    """Return a hashable key for an input of a mechanism.

    The key of an array consists of its dtype, shape and bytes. The key of any other input, and of
    an array of objects, is its repr.
    """
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value.dtype.str, value.shape, value.tobytes()
    return repr(value)
