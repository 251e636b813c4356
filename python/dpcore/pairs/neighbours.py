"""Neighbour relations, sets of inputs (domains), and ready-made pairs of inputs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Protocol, cast, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from .. import errors
from ..records import Floats, Pair, Record, get_attribute
from ..suggestions import explain_argument_errors
from .differences import Norm, dimension, distance, distances, pair_lists_to_float_arrays

Which = Literal["one", "all"]
WHICH: Final[tuple[Which, ...]] = get_args(Which)
"""Choices of `patterns`: neighbours differ in one entry, or in all entries."""

SLACK: Final = 1e-9
"""Relative tolerance of a distance, because rounding may move a neighbour beyond the radius."""

_RELATION_METHODS: Final = ("holds", "starts", "move")

_RELATION_EXAMPLES: Final = "L1(1.0), L2(1.0), Linf(1.0), Replace() or AddRemove()"

_ENTRY_GAPS: Final = (1 / 3, 1 / 12, 1.0)
"""Gaps between entries, as fractions of the width of the domain.

If one query answer is far from all other answers, only this answer determines the output. The tail
of the output then shows the whole change of the answer.
"""

_MAX_SHIFT_HALVINGS: Final = 7
"""`move` shifts entries by the width of the domain times 2^-1 to 2^-7."""


@explain_argument_errors
def zeros_ones(dim: int) -> Pair:
    """Return the two inputs of Habernal's reconstruction attack: x = (0, ..., 0), x' = (1, ..., 1).

    Args:
        dim: number of entries of x and of x', at least 1.

    Returns:
        The pair, in float64. The L1 distance between x and x' is dim, the L2 distance is sqrt(dim),
        and the Linf distance is 1.

    Raises:
        TypeError: if `dim` is not an integer.
        ValueError: if `dim` is below 1.

    Source:
        Habernal (2022), section 4: D = (0, ..., 0) and D' = (1, ..., 1).

    Example:
        >>> zeros_ones(2)
        Pair(x=array([0., 0.]), x_prime=array([1., 1.]))
    """
    dim = dimension(dim)
    return Pair(np.zeros(dim), np.ones(dim))


@explain_argument_errors
def patterns(dim: int, which: Which) -> tuple[Pair, ...]:
    """List the pairs of inputs (x, x') that the literature uses for audits.

    Each input is a vector of query answers, to which a mechanism adds noise.

    If `which` is "one", the list has two pairs. In both pairs, x is (1, ..., 1). In x', the first
    entry is 0 or 2, and all other entries are 1. The L1 distance between x and x' is 1.

    If `which` is "all", six more pairs follow. The Linf distance between x and x' is 1 in each
    pair:

    - x is (1, ..., 1). In x', the first entry is 2 and all other entries are 0.
    - x is (1, ..., 1). In x', the first entry is 0 and all other entries are 2.
    - x is (1, ..., 1). In x', the first half of the entries is 2 and the second half 0.
    - x is (1, ..., 1), and x' is (2, ..., 2).
    - x is (1, ..., 1), and x' is (0, ..., 0).
    - In x, the first half of the entries is 1 and the second half 0. In x', the first half is 0 and
      the second half 1.

    The list contains only one of the pairs (x, x') and (x', x), because an audit compares x with x'
    and also x' with x. If `dim` is small, some of these pairs are equal. Equal pairs are listed
    once.

    Among pairs with the same L1 distance, an audit certifies the largest epsilon if x and x' differ
    in only one entry. The example below audits Laplace noise with a scale that is 10 % too small,
    on pairs with L1 distance 1. The true privacy loss is 1.11 on all these pairs. If x and x'
    differ in one entry, the audit certifies 1.08 and refutes the claim of 1. If all 128 entries
    differ, the audit certifies only 0.07.

    Args:
        dim: number of entries of each input, at least 1.
        which: "one" if neighbouring inputs differ in one entry, "all" if neighbouring inputs may
            differ in every entry. The argument has no default, because the right value depends on
            the claim. If a claim protects only one entry, an audit on the pairs of "all" may refute
            the claim although it is true.

    Returns:
        The pairs, as float64 vectors: 2 pairs for "one", and at most 8 pairs for "all".

    Raises:
        TypeError: if `dim` is not an integer, or if `which` is not a string.
        ValueError: if `dim` is below 1, or if `which` is not one of the two names.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018), the categories of their input selector. Bichsel,
        Steffen, Bogunovic and Vechev (2021) use the same patterns.

    Example:
        >>> [pair.x_prime.tolist() for pair in patterns(3, "one")]
        [[0.0, 1.0, 1.0], [2.0, 1.0, 1.0]]
        >>> [len(patterns(dim, "all")) for dim in (1, 2, 5)]
        [2, 7, 8]
        >>> import dpcore
        >>> spread = Pair(np.zeros(128), np.full(128, 1 / 128))
        >>> for pair in (patterns(128, "one"), spread):
        ...     report = dpcore.audit(dpcore.Laplace(0.9), pair, claim=1.0, trials=10**5, rng=7)
        ...     print(f"{report.epsilon_lower:.2f} {report.verdict}")
        1.08 refuted
        0.07 not refuted by this attack
    """
    dim = dimension(dim)
    errors.choice("which", which, WHICH)
    first, front = np.arange(dim) == 0, np.arange(dim) < dim // 2
    ones, zeros = np.ones(dim), np.zeros(dim)
    vectors: list[tuple[Floats, Floats]] = [(ones, ones - first), (ones, ones + first)]
    if which == "all":
        vectors += [
            (ones, zeros + 2.0 * first),
            (ones, zeros + 2.0 * ~first),
            (ones, zeros + 2.0 * front),
            (ones, ones + ones),
            (ones, zeros),
            (zeros + front, zeros + ~front),
        ]
    distinct: dict[frozenset[bytes], Pair] = {}
    for x, x_prime in vectors:
        distinct.setdefault(frozenset((x.tobytes(), x_prime.tobytes())), Pair(x, x_prime))
    return tuple(distinct.values())


@runtime_checkable
class Domain(Protocol):
    """A set of inputs, such as `Box` or `Texts`, in which a search looks for two neighbours."""

    @property
    def dim(self) -> int:
        """Size of one input in this set: the number of vector entries, records or words."""

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw a random input from this set of inputs."""

    def contains(self, x: Any) -> bool:
        """Return True if the input x belongs to this set of inputs."""


@runtime_checkable
class Bounded(Domain, Protocol):
    """A set of vectors; the entries of each vector lie between two bounds."""

    @property
    def low(self) -> Any:
        """Smallest allowed value of the vector entries: one number, or one number per entry."""

    @property
    def high(self) -> Any:
        """Largest allowed value of the vector entries: one number, or one number per entry."""

    def clip(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the vector in this set that is nearest to the vector x."""


class Neighbour(Protocol):
    """Neighbour relation: it states for which pairs of inputs (x, x') a privacy claim is made."""

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if two inputs in the set `domain` are neighbours and are not equal."""

    def starts(self, domain: Domain, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield the pairs of inputs with which a search for neighbours begins, best guesses first.

        Some of these pairs are possibly not neighbours. The search tests each pair with the method
        `holds`, and skips pairs that are not neighbours.
        """

    def move(self, pair: Pair, domain: Domain, rng: np.random.Generator) -> Pair:
        """Return a random pair of inputs that differs slightly from a given pair of inputs.

        The new pair may consist of inputs that are not neighbours. The search tests the pair with
        the method `holds`, and skips the pair if its inputs are not neighbours.
        """


NeighbourArgument = Neighbour | Norm | tuple[Norm, float]
"""Type of the argument `neighbour`: a relation, a norm's name (radius 1), or (norm, radius)."""


class DomainAttributes:
    """Default values of the optional attributes of a set of inputs or of a neighbour relation.

    A set of inputs is also called a domain. The default value of each attribute is None.

    Attributes:
        clip: function `(x)` that returns the vector in the domain that is nearest to x.
        neighbouring: function `(x, x_prime)` that returns True if two datasets differ in one
            record.
        radius: for a domain, the radius of a norm ball. For a relation, the largest distance
            between two neighbours.
        low: smallest allowed value of a vector entry.
        high: largest allowed value of a vector entry.
        norm: norm in which the distance between neighbours is measured.
        apart: function `(pair)` that returns the distance between two inputs. A relation with this
            function also has an attribute `most`. Two inputs are neighbours if their distance is at
            most `most`.
        values: list or tuple of the possible values of a record.
        describe_change: function `(pair)` that describes the difference between two inputs in one
            text, such as "number: '12' for '7'". In this text, the kind of the change is before the
            colon, and the details are after the colon.
    """

    clip = neighbouring = radius = low = high = norm = apart = values = describe_change = None


def attr_or_none(owner: Any, name: str) -> Any:
    """Return an optional attribute of a set of inputs or of a neighbour relation.

    If the object has no attribute with this name, the result is None.
    """
    return get_attribute(DomainAttributes, owner, name)


def check_domain(
    value: Any, name: str = "domain", requirement: str = "a domain with dim, draw and contains"
) -> Domain:
    """Check that a value is a set of inputs for a search, and return the value.

    A set of inputs is an object with the attribute `dim` and the methods `draw` and `contains`.

    Raises:
        TypeError: if the value is not such an object, or is a class instead of an instance.
    """
    # A class has the methods of its instances too, so the protocol alone does not exclude it.
    if isinstance(value, type) or not isinstance(value, Domain):
        raise errors.mistyped(name, requirement, value)
    dimension(value.dim)
    return value


def neighbour_of(value: Any) -> Neighbour:
    """Convert the argument `neighbour` of another function to a neighbour relation.

    If the value is a neighbour relation, it is returned unchanged. If the value is a tuple (norm,
    radius), two inputs are neighbours if their distance in the norm is at most the radius. If the
    value is only the name of a norm, the radius is 1.

    Raises:
        TypeError: if the value has another form, or is a class instead of an instance.

    Example:
        >>> neighbour_of("l1"), neighbour_of(("l2", 3.0))
        (L1(radius=1.0), L2(radius=3.0))
    """
    name, radius = value if isinstance(value, tuple) and len(value) == 2 else (value, 1.0)
    if isinstance(name, str) and name in NORM_BALLS:
        return NORM_BALLS[name](radius)
    parts = [getattr(value, part, None) for part in _RELATION_METHODS]
    if isinstance(value, type) or not all(map(callable, parts)):
        methods = f"a neighbour relation with {', '.join(_RELATION_METHODS)}"
        raise errors.mistyped("neighbour", f"{methods} (dpcore.pairs.{_RELATION_EXAMPLES})", value)
    return cast(Neighbour, value)


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Box(Record, word="Box"):
    """Set of vectors: all entries of each vector lie between the numbers `low` and `high`.

    Args:
        low: smallest allowed entry, finite.
        high: largest allowed entry, finite and at least `low`.
        dim: number of entries of each vector, at least 1.
        integers: True if all entries must be whole numbers. `low` and `high` must then be whole
            numbers too.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `dim` is below 1, if a bound is not finite, or if `high` is below `low`. If
            `integers` is True, also if a bound is not a whole number, or has an absolute value
            above 2**53.

    Example:
        >>> box = Box(0, 3, 2, integers=True)
        >>> box.contains([1, 3]), box.contains([1.5, 3])
        (True, False)
        >>> box.clip(np.array([1.6, 7.0]))
        array([2, 3])
    """

    low: float
    high: float
    dim: int
    integers: bool = False

    def __post_init__(self) -> None:
        """Check the fields and store plain numbers."""
        errors.flag("integers", self.integers)
        low = errors.real("low", self.low)
        high = errors.real("high", self.high, low=low)
        for name, value in (("low", low), ("high", high)):
            # Above 2**53, float64 cannot represent every integer.
            if self.integers and not (value.is_integer() and abs(value) <= 2.0**53):
                raise errors.invalid(name, "a whole number of magnitude at most 2**53", value)
            object.__setattr__(self, name, value)
        if not np.isfinite(high - low):
            raise errors.invalid("high", "at a finite distance from low", high)
        object.__setattr__(self, "dim", dimension(self.dim))

    def draw(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw a random vector from this box, uniformly; the shape is `(dim,)`.

        If the entries must be integers, the dtype is int64. Otherwise the dtype is float64.
        """
        errors.instance("rng", rng, np.random.Generator)
        if self.integers:
            return rng.integers(int(self.low), int(self.high), self.dim, endpoint=True)
        return rng.uniform(self.low, self.high, self.dim)

    def contains(self, x: Any) -> bool:
        """Return True if the vector x belongs to this box.

        The vector must have `dim` entries, all between `low` and `high`.

        If `integers` is True, all entries must also be whole numbers.
        """
        try:
            array = errors.vector("x", x, self.dim)
        except (TypeError, ValueError):
            return False
        inside = bool(((array >= self.low) & (array <= self.high)).all())
        return inside and not (self.integers and (array != np.rint(array)).any())

    def clip(self, x: Any) -> npt.NDArray[Any]:
        """Return the vector in this box that is nearest to x; the shape is `(dim,)`.

        If the entries must be integers, the dtype is int64. Otherwise the dtype is float64.

        Args:
            x: a vector of `dim` finite numbers.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if x is not a vector of `dim` finite numbers.
        """
        nearest: npt.NDArray[Any] = np.clip(errors.vector("x", x, self.dim), self.low, self.high)
        return np.rint(nearest).astype(np.int64) if self.integers else nearest


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _NormBall(Record):
    """Base class of `L1`, `L2` and `Linf`: neighbours have a distance of at most `radius`."""

    radius: float = 1.0

    norm: ClassVar[Norm]

    def __post_init__(self) -> None:
        """Check the radius."""
        radius = errors.real("radius", self.radius, low=0.0, open_low=True)
        object.__setattr__(self, "radius", radius)

    @property
    def limit(self) -> str:
        """Condition on two neighbours, as text, such as "at L1 distance at most 1.0"."""
        return f"at {self.norm.capitalize()} distance at most {self.radius!r}"

    @property
    def most(self) -> float:
        """Largest distance of two neighbours, which is the radius."""
        return self.radius

    def apart(self, pair: Pair) -> float:
        """Compute the distance of two inputs in the norm of the relation, in the inputs' units.

        Raises:
            TypeError: if the inputs are not arrays of real numbers.
            ValueError: if the shapes of the inputs differ.
        """
        return distance(pair, self.norm)

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if two inputs in the set `domain` are neighbours and are not equal.

        Two inputs are neighbours if their distance is at most `radius`.
        """
        if not (domain.contains(pair.x) and domain.contains(pair.x_prime)):
            return False
        return 0.0 < distance(pair, self.norm) <= self.radius * (1.0 + SLACK)

    def starts(self, domain: Domain, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield the pairs with which a search begins, without end.

        The first pairs are those of `dpcore.pairs.patterns`. The next pairs change one, half or all
        entries of certain vectors: constant vectors, and vectors with a gap between two groups of
        entries. All later pairs are random.

        Args:
            domain: set of vectors, with `low`, `high` and `clip`.
            rng: generator that draws the random pairs.

        Returns:
            An iterator of pairs.

        Raises:
            TypeError: if the domain has no bounds.
        """
        space = _require_bounded(domain)
        for pair in patterns(space.dim, "one" if self.norm == "l1" else "all"):
            # Clipping also converts entries to those of the domain, for example to integers.
            yield Pair(space.clip(pair.x), space.clip(pair.x_prime))
        bases, signs = _list_start_vectors(space), _list_directions_of_change(space.dim)
        places = itertools.product(range(len(bases)), range(len(signs)))
        # Combinations that are early in both lists come first.
        for row, column in sorted(places, key=sum):
            yield self._make_clipped_pair(bases[row], signs[column], space)
        while True:
            base = np.asarray(space.draw(rng), dtype=np.float64)
            yield self._make_clipped_pair(base, rng.choice([-1.0, 0.0, 1.0], space.dim), space)

    def move(self, pair: Pair, domain: Domain, rng: np.random.Generator) -> Pair:
        """Return a random pair that is similar to a given pair (x, x').

        The function draws an entry and chooses a group of entries: this entry, all entries equal to
        it, all other entries, or all entries. It then makes one of these changes at random:

        - It shifts x and x' up or down in this group.
        - It sets x to one common value in this group.
        - It changes the sign, or the size, of x' - x in this group.

        Args:
            pair: the given pair.
            domain: set of vectors, with `low`, `high` and `clip`.
            rng: generator that chooses the change.

        Returns:
            The new pair.

        Raises:
            TypeError: if the domain has no bounds.
        """
        space = _require_bounded(domain)
        base = np.array(pair.x, dtype=np.float64)
        change = np.asarray(pair.x_prime, dtype=np.float64) - base
        chosen = _choose_changed_entries(base, change, rng)
        step = (space.high - space.low) * 0.5 ** rng.integers(1, _MAX_SHIFT_HALVINGS, endpoint=True)
        match rng.integers(5):
            case 0:
                base = base + chosen * step
            case 1:
                base = base - chosen * step
            case 2:
                base[chosen] = base[rng.integers(base.size)]
            case 3:
                change[chosen] = -change[chosen]
            case _:
                change[chosen] = rng.choice([-1.0, 0.0, 1.0]) * np.abs(change).max()
        return self._make_clipped_pair(base, change, space)

    def _make_clipped_pair(self, base: Floats, change: Floats, space: Bounded) -> Pair:
        """Return the pair of base and base + change, clipped to the domain.

        First, the change is scaled so that its norm is the radius of the relation.
        """
        apart = distance(Pair(np.zeros(change.size), change), self.norm)
        change = change * (self.radius / apart) if apart > 0.0 else change
        room = space.low + np.maximum(-change, 0.0), space.high - np.maximum(change, 0.0)
        x = space.clip(np.clip(base, *room))
        pair = Pair(x, space.clip(x + change))
        if distance(pair, self.norm) > self.radius * (1.0 + SLACK):
            # Rounding to integers exceeded the radius. Rounding towards zero cannot exceed it.
            return Pair(x, space.clip(x + np.trunc(change)))
        return pair


@explain_argument_errors
class L1(_NormBall, word="L1"):
    """Neighbour relation: two vectors are neighbours if their L1 distance is at most `radius`.

    The L1 distance is the sum of the absolute differences of all entries.

    Args:
        radius: largest distance, in the units of the inputs, finite and above 0.

    Raises:
        TypeError: if `radius` is not a number.
        ValueError: if `radius` is not finite or not above 0.

    Source:
        Dwork and Roth (2014), definitions 2.4 and 3.1.

    Example:
        >>> from dpcore.pairs import Box
        >>> L1(1.0).holds(Pair([0, 0], [0.5, 0.5]), Box(0, 1, 2))
        True
        >>> L1(1.0).holds(Pair([0, 0], [1, 1]), Box(0, 1, 2))
        False
    """

    __slots__ = ()
    norm = "l1"


@explain_argument_errors
class L2(_NormBall, word="L2"):
    """Neighbour relation: two vectors are neighbours if their L2 distance is at most `radius`.

    The L2 distance is the Euclidean distance.

    Args:
        radius: largest distance, in the units of the inputs, finite and above 0.

    Raises:
        TypeError: if `radius` is not a number.
        ValueError: if `radius` is not finite or not above 0.

    Source:
        Dwork and Roth (2014), definition 3.8.

    Example:
        >>> from dpcore.pairs import Box
        >>> L2(5.0).holds(Pair([0, 0], [3, 4]), Box(0, 9, 2))
        True
    """

    __slots__ = ()
    norm = "l2"


@explain_argument_errors
class Linf(_NormBall, word="Linf"):
    """Neighbour relation: two vectors are neighbours if no entry differs by more than `radius`.

    Args:
        radius: largest absolute difference of an entry, in the units of the inputs, finite and
            above 0.

    Raises:
        TypeError: if `radius` is not a number.
        ValueError: if `radius` is not finite or not above 0.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018): one record changes the answer to each of several
        counting queries by at most 1.

    Example:
        >>> from dpcore.pairs import Box
        >>> Linf(1.0).holds(Pair([0, 0], [1, -1]), Box(-5, 5, 2))
        True
    """

    __slots__ = ()
    norm = "linf"


NORM_BALLS: Final[dict[str, type[_NormBall]]] = {"l1": L1, "l2": L2, "linf": Linf}
"""For each norm, the class of neighbour relations that limit the distance in this norm."""


def _require_bounded(domain: Domain) -> Bounded:
    if not isinstance(domain, Bounded):
        raise errors.mistyped("domain", "one of vectors, with low, high and clip", domain)
    return domain


def _list_directions_of_change(dim: int) -> list[Floats]:
    """List the directions in which x' may differ from x, as vectors of -1, 0 and 1.

    Each direction changes one entry, half of the entries or all entries. The signs of the changes
    are equal or mixed.
    """
    place = np.arange(dim)
    first, last, front = place == 0, place == dim - 1, place < (dim + 1) // 2
    ones = np.ones(dim)
    directions = [
        ones - 2.0 * first, ones - 2.0 * last, 1.0 * first, ones, 1.0 * last,
        2.0 * front - ones, 1.0 * front, 1.0 - 2.0 * (place % 2),
    ]  # fmt: skip
    return list({signs.tobytes(): signs for signs in directions}.values())


def _list_start_vectors(space: Bounded) -> list[Floats]:
    """List the vectors x from which a search begins: constant vectors, and vectors with two values.

    In a vector with two values, the first entry, the last entry or the first half of the entries
    has the second value.
    """
    low, high = (
        np.broadcast_to(np.asarray(end, dtype=np.float64), space.dim)
        for end in (space.low, space.high)
    )
    width, middle = high - low, low + (high - low) / 2.0
    place = np.arange(space.dim)
    bases = [middle]
    for gap in _ENTRY_GAPS:
        for part in (place == 0, place == space.dim - 1, place < (space.dim + 1) // 2):
            # Half of the gap in each direction keeps both levels inside the domain for a full gap.
            bases += [middle + gap * width * (0.5 - part), middle + gap * width * (part - 0.5)]
    bases += [np.zeros(space.dim), np.ones(space.dim), low.copy(), high.copy()]
    clipped = [np.asarray(space.clip(base), dtype=np.float64) for base in bases]
    return list({base.tobytes(): base for base in clipped}.values())


def _choose_changed_entries(
    base: Floats, change: Floats, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Choose at random the entries that `move` changes; return them as a mask."""
    place = int(rng.integers(base.size))
    alone = np.arange(base.size) == place
    others = ~alone if base.size > 1 else alone
    everything = np.ones(base.size, dtype=np.bool_)
    groups = alone, others, base == base[place], change == change[place], everything
    return np.asarray(groups[rng.integers(5)])


class _AnyInput:
    """Set of all inputs, for neighbour relations with a method `holds` but no method `apart`."""

    dim = 1

    def contains(self, x: Any) -> bool:
        return True

    def draw(self, rng: np.random.Generator) -> Any:
        raise NotImplementedError("a relation is only asked here, not searched")


def neighbour_python_call(neighbour: Any) -> str:
    """Return a text that shows a neighbour relation, as the Python call that makes the relation.

    If the repr of the relation contains a memory address, the result is the name of the class of
    the relation.

    Example:
        >>> from dpcore.pairs import L1
        >>> neighbour_python_call(L1(2.0))
        'L1(radius=2.0)'
    """
    shown = repr(neighbour)
    # The address of an object differs between runs.
    return type(neighbour).__qualname__ if " object at 0x" in shown else shown


def refuse_non_neighbours(pair: Pair, neighbour: Any) -> None:
    """Raise an error if two inputs are not neighbours.

    Equal inputs count as neighbours if the relation has a method `apart`, which computes distances.
    Otherwise the method `holds` of the relation decides.

    Args:
        pair: the two inputs.
        neighbour: an instance of `L1`, `L2`, `Linf`, `Replace` or `AddRemove`, or another neighbour
            relation. If the relation has no method `apart`, the function calls
            `holds(pair, domain)`. The argument `domain` is then a set that contains all inputs.

    Raises:
        TypeError: if `neighbour` is not a neighbour relation, or if the relation cannot compare
            inputs of this type.
        ValueError: if the inputs are not neighbours. The message states the distance of the inputs
            and the largest distance that the relation allows.

    Example:
        >>> from dpcore.pairs import L1
        >>> refuse_non_neighbours(Pair([0, 0], [1, 1]), L1(1.0))
        Traceback (most recent call last):
        ValueError: pair must be at L1 distance at most 1.0 (neighbour=L1(radius=1.0)), got 2.0
    """
    relation: Any = neighbour_of(neighbour)
    if attr_or_none(relation, "apart") is None:
        if not relation.holds(pair_lists_to_float_arrays(pair), _AnyInput()):
            differences = distances(pair) or (pair.x, pair.x_prime)
            raise errors.invalid(
                "pair", f"two neighbours by {neighbour_python_call(relation)}", differences
            )
        return
    apart = relation.apart(pair)
    # This form of the comparison also refuses NaN.
    if not apart <= relation.most * (1.0 + SLACK):
        shown = neighbour_python_call(relation)
        error = errors.invalid("pair", f"{relation.limit} (neighbour={shown})", apart)
        raise errors.tag_error(error, "pair")
