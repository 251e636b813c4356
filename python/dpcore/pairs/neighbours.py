"""Neighbour relations and domains of inputs: norm balls, boxes, and ready-made pairs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Protocol, cast, get_args, runtime_checkable

import numpy as np
import numpy.typing as npt

from .. import errors
from ..records import Floats, Pair, Record, attribute_of
from ..suggestions import suggest_arguments
from .differences import Norm, dimension, distance, distances, pair_to_floats

Which = Literal["one", "all"]
WHICH: Final[tuple[Which, ...]] = get_args(Which)
"""Choices for the entries that `patterns` changes: one entry, or all of them."""

SLACK: Final = 1e-9
"""Relative tolerance of a distance. Rounding may put a neighbour slightly beyond the radius."""

_RELATION_METHODS: Final = ("holds", "starts", "move")

_RELATION_EXAMPLES: Final = "L1(1.0), L2(1.0), Linf(1.0), Replace() or AddRemove()"

_ENTRY_GAPS: Final = (1 / 3, 1 / 12, 1.0)
"""Gaps between entries, as shares of the domain's width.

If one query answer is far from the others, it alone determines the output, and the tail of the
output then shows its whole change.
"""

_MAX_SHIFT_HALVINGS: Final = 7
"""A move shifts entries by the domain's width times 2^-1 to 2^-7."""


@suggest_arguments
def zeros_ones(dim: int) -> Pair:
    """Return the pair of the reconstruction attack: a vector of zeros and a vector of ones.

    Args:
        dim: number of entries, at least 1.

    Returns:
        `Pair(zeros(dim), ones(dim))` in float64: L1 distance dim, L2 sqrt(dim), Linf 1.

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


@suggest_arguments
def patterns(dim: int, which: Which) -> tuple[Pair, ...]:
    """List the pairs of query answers that the literature uses, each in one order.

    The first two pairs change the first entry of (1, ..., 1) by one, down or up. Their L1 distance
    is 1, and `which="one"` returns only these. For `which="all"`, the pairs have Linf distance 1,
    and six more patterns follow:

    - the first entry up and the others down, or the reverse;
    - the first half of the entries up and the second half down;
    - all entries up, or all entries down;
    - (1, ..., 0, ...) against (0, ..., 1, ...).

    An audit chooses which input is in the numerator, so each pair is listed in one order. In low
    dimensions, several patterns are the same pair, which is listed once.

    Among pairs at the same L1 distance, an attack is most powerful on a pair that differs in a
    single entry. The example has Laplace noise that is 10 % too small: its loss is 1.11 on both
    pairs. The audit refutes it on the pair that differs in one entry, but finds hardly any loss if
    the same distance is spread over 128 entries.

    Args:
        dim: number of entries, at least 1.
        which: "one" if neighbours differ in one entry, "all" if every entry may differ. There is no
            default: if a claim is about one entry, the patterns of "all" would refute private
            mechanisms.

    Returns:
        Pairs of float64 vectors: 2 for "one", at most 8 for "all".

    Raises:
        TypeError: if `dim` is not an integer or `which` not a string.
        ValueError: if `dim` is below 1 or `which` is not one of the two names.

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
    """A set of inputs."""

    @property
    def dim(self) -> int:
        """Number of entries, or of records, of one input."""

    def draw(self, rng: np.random.Generator) -> Any:
        """Draw an input of the set."""

    def contains(self, x: Any) -> bool:
        """Return True if x belongs to the set."""


@runtime_checkable
class Bounded(Domain, Protocol):
    """A set of vectors between two bounds."""

    @property
    def low(self) -> Any:
        """Smallest entry of an input: one number, or one number per entry."""

    @property
    def high(self) -> Any:
        """Largest entry of an input: one number, or one number per entry."""

    def clip(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the input of the set that is nearest to a vector."""


class Neighbour(Protocol):
    """Neighbour relation: it defines which two inputs a privacy claim must protect."""

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if the inputs are different, lie in the domain and are neighbours."""

    def starts(self, domain: Domain, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield the pairs to try first, the most promising first. Some may not be neighbours."""

    def move(self, pair: Pair, domain: Domain, rng: np.random.Generator) -> Pair:
        """Return a pair slightly different from a given pair. Its inputs may not be neighbours."""


NeighbourArgument = Neighbour | Norm | tuple[Norm, float]
"""Type of `neighbour=`: a relation, the name of a norm (radius 1), or a tuple (norm, radius)."""


class DomainAttributes:
    """Optional attributes of a domain or a relation, each with its default value.

    Attributes:
        clip: function `(x)` that returns the nearest member of a domain of vectors.
        neighbouring: function `(x, x_prime)` that returns True for two datasets that differ in one
            record.
        radius: size of a ball, or distance of neighbours.
        low: smallest entry of a vector.
        high: largest entry of a vector.
        norm: norm of the distance of neighbours.
        apart: function `(pair)` that returns the distance of two inputs, in the units of `most`.
        values: possible values of a record, a list or tuple.
        describe_change: function `(pair)` that describes the difference of two inputs as text: a
            kind, ":" and details.
    """

    clip = neighbouring = radius = low = high = norm = apart = values = describe_change = None


def domain_attribute(domain: Any, name: str) -> Any:
    """Return an optional attribute of a domain or a relation, or its default value."""
    return attribute_of(DomainAttributes, domain, name)


def domain_of(
    value: Any, name: str = "domain", requirement: str = "a domain with dim, draw and contains"
) -> Domain:
    """Check that a value is a domain object, not a class, and return it."""
    # A class has the methods of its instances too, so the protocol alone does not exclude it.
    if isinstance(value, type) or not isinstance(value, Domain):
        raise errors.mistyped(name, requirement, value)
    dimension(value.dim)
    return value


def neighbour_of(value: Any) -> Neighbour:
    """Return a neighbour relation from a relation object, the name of a norm, or (norm, radius).

    Raises:
        TypeError: if the value is not one of these, or is a class.

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


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Box(Record, word="Box"):
    """Domain of vectors whose entries all lie between two numbers.

    Args:
        low: smallest allowed entry, finite.
        high: largest allowed entry, finite and at least `low`.
        dim: number of entries, at least 1.
        integers: True if entries are whole numbers. `low` and `high` must then be whole numbers
            too.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is not finite or `high` is below `low`. With `integers`, also if a
            bound is not a whole number of magnitude at most 2**53.

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
        """Draw a vector with independent uniform entries, shape `(dim,)`; int64 for integers."""
        errors.instance("rng", rng, np.random.Generator)
        if self.integers:
            return rng.integers(int(self.low), int(self.high), self.dim, endpoint=True)
        return rng.uniform(self.low, self.high, self.dim)

    def contains(self, x: Any) -> bool:
        """Return True if x is a vector of `dim` entries that lie between the bounds."""
        try:
            array = errors.vector("x", x, self.dim)
        except (TypeError, ValueError):
            return False
        inside = bool(((array >= self.low) & (array <= self.high)).all())
        return inside and not (self.integers and (array != np.rint(array)).any())

    def clip(self, x: Any) -> npt.NDArray[Any]:
        """Return the nearest vector of the box, shape `(dim,)`; int64 for integers.

        Args:
            x: a vector of `dim` finite numbers.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if it is not a vector of `dim` finite numbers.
        """
        nearest: npt.NDArray[Any] = np.clip(errors.vector("x", x, self.dim), self.low, self.high)
        return np.rint(nearest).astype(np.int64) if self.integers else nearest


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _NormBall(Record):
    """Neighbours at a distance of at most `radius` in the norm of the class."""

    radius: float = 1.0

    norm: ClassVar[Norm]

    def __post_init__(self) -> None:
        """Check the radius."""
        radius = errors.real("radius", self.radius, low=0.0, open_low=True)
        object.__setattr__(self, "radius", radius)

    @property
    def limit(self) -> str:
        """Condition that the relation puts on a pair, in words."""
        return f"at {self.norm.capitalize()} distance at most {self.radius!r}"

    @property
    def most(self) -> float:
        """Largest value of `apart` for neighbours, which is the radius."""
        return self.radius

    def apart(self, pair: Pair) -> float:
        """Compute the distance of the inputs in the norm of the class, in the units of the inputs.

        Raises:
            TypeError: if the inputs are not arrays of real numbers.
            ValueError: if their shapes differ.
        """
        return distance(pair, self.norm)

    def holds(self, pair: Pair, domain: Domain) -> bool:
        """Return True if both inputs lie in the domain, differ, and are at most `radius` apart."""
        if not (domain.contains(pair.x) and domain.contains(pair.x_prime)):
            return False
        return 0.0 < distance(pair, self.norm) <= self.radius * (1.0 + SLACK)

    def starts(self, domain: Domain, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield the pairs of `patterns`, then changes of mixed signs, then random pairs.

        The iterator has no end. The vectors that are changed are constant ones and ones with gaps
        between their entries.

        Args:
            domain: domain of the inputs, with `low`, `high` and `clip`.
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
        bases, signs = _list_bases(space), _list_directions(space.dim)
        places = itertools.product(range(len(bases)), range(len(signs)))
        # Combinations that are early in both lists come first.
        for row, column in sorted(places, key=sum):
            yield self._pair(bases[row], signs[column], space)
        while True:
            base = np.asarray(space.draw(rng), dtype=np.float64)
            yield self._pair(base, rng.choice([-1.0, 0.0, 1.0], space.dim), space)

    def move(self, pair: Pair, domain: Domain, rng: np.random.Generator) -> Pair:
        """Shift, equalise or negate some entries: one, those equal to it, all others, or all.

        Args:
            pair: pair from which the move starts.
            domain: domain of the inputs, with `low`, `high` and `clip`.
            rng: generator that chooses the move.

        Returns:
            The new pair.

        Raises:
            TypeError: if the domain has no bounds.
        """
        space = _require_bounded(domain)
        base = np.array(pair.x, dtype=np.float64)
        change = np.asarray(pair.x_prime, dtype=np.float64) - base
        chosen = _choose_group(base, change, rng)
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
        return self._pair(base, change, space)

    def _pair(self, base: Floats, change: Floats, space: Bounded) -> Pair:
        """Return the pair of base and base + change, clipped to the domain.

        The change is first scaled to the radius.
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


@suggest_arguments
class L1(_NormBall, word="L1"):
    """Neighbour relation: the L1 distance of the inputs is at most `radius`.

    The L1 distance is the sum of absolute differences.

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


@suggest_arguments
class L2(_NormBall, word="L2"):
    """Neighbour relation: the Euclidean distance of the inputs is at most `radius`.

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


@suggest_arguments
class Linf(_NormBall, word="Linf"):
    """Neighbour relation: the inputs differ by at most `radius` in every entry.

    Args:
        radius: largest difference, in the units of the inputs, finite and above 0.

    Raises:
        TypeError: if `radius` is not a number.
        ValueError: if `radius` is not finite or not above 0.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018). One record changes the answer to each of several
        counting queries by at most 1.

    Example:
        >>> from dpcore.pairs import Box
        >>> Linf(1.0).holds(Pair([0, 0], [1, -1]), Box(-5, 5, 2))
        True
    """

    __slots__ = ()
    norm = "linf"


NORM_BALLS: Final[dict[str, type[_NormBall]]] = {"l1": L1, "l2": L2, "linf": Linf}
"""Relations that are balls of a norm, by the name of the norm."""


def _require_bounded(domain: Domain) -> Bounded:
    if not isinstance(domain, Bounded):
        raise errors.mistyped("domain", "one of vectors, with low, high and clip", domain)
    return domain


def _list_directions(dim: int) -> list[Floats]:
    """List directions of change: one entry, all entries, half of them, and mixed signs."""
    place = np.arange(dim)
    first, last, front = place == 0, place == dim - 1, place < (dim + 1) // 2
    ones = np.ones(dim)
    directions = [
        ones - 2.0 * first, ones - 2.0 * last, 1.0 * first, ones, 1.0 * last,
        2.0 * front - ones, 1.0 * front, 1.0 - 2.0 * (place % 2),
    ]  # fmt: skip
    return list({signs.tobytes(): signs for signs in directions}.values())


def _list_bases(space: Bounded) -> list[Floats]:
    """List vectors to change: constant vectors, and vectors with two levels of entries.

    The entries at the second level are the first entry, the last entry, or the first half.
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


def _choose_group(base: Floats, change: Floats, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Choose the entries that a move changes, as a mask."""
    place = int(rng.integers(base.size))
    alone = np.arange(base.size) == place
    others = ~alone if base.size > 1 else alone
    everything = np.ones(base.size, dtype=np.bool_)
    groups = alone, others, base == base[place], change == change[place], everything
    return np.asarray(groups[rng.integers(5)])


class _AnyInput:
    """Domain of all inputs, for relations that have no distance `apart`, only `holds`."""

    dim = 1

    def contains(self, x: Any) -> bool:
        return True

    def draw(self, rng: np.random.Generator) -> Any:
        raise NotImplementedError("a relation is only asked here, not searched")


def format_neighbour(neighbour: Any) -> str:
    """Format a relation as its constructor call, or as its class name if that is unknown.

    Example:
        >>> from dpcore.pairs import L1
        >>> format_neighbour(L1(2.0))
        'L1(radius=2.0)'
    """
    shown = repr(neighbour)
    # The address of an object differs between runs.
    return type(neighbour).__qualname__ if " object at 0x" in shown else shown


def refuse_farther(pair: Pair, neighbour: Any) -> None:
    """Raise an error if a pair is not a pair of neighbours; two equal inputs pass.

    Args:
        pair: the two inputs.
        neighbour: `L1`, `L2`, `Linf`, `Replace`, `AddRemove`, or a custom relation, whose `holds`
            is called with a domain that contains all inputs.

    Raises:
        TypeError: if `neighbour` is not a relation, or cannot compare inputs of this type.
        ValueError: if the distance of the inputs is larger than the relation allows. The message
            states both distances.

    Example:
        >>> from dpcore.pairs import L1
        >>> refuse_farther(Pair([0, 0], [1, 1]), L1(1.0))
        Traceback (most recent call last):
        ValueError: pair must be at L1 distance at most 1.0 (neighbour=L1(radius=1.0)), got 2.0
    """
    relation: Any = neighbour_of(neighbour)
    if domain_attribute(relation, "apart") is None:
        if not relation.holds(pair_to_floats(pair), _AnyInput()):
            differences = distances(pair) or (pair.x, pair.x_prime)
            raise errors.invalid(
                "pair", f"two neighbours by {format_neighbour(relation)}", differences
            )
        return
    apart = relation.apart(pair)
    # This form of the comparison also refuses NaN.
    if not apart <= relation.most * (1.0 + SLACK):
        shown = format_neighbour(relation)
        error = errors.invalid("pair", f"{relation.limit} (neighbour={shown})", apart)
        raise errors.about(error, "pair")
