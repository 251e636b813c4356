"""Detection of repeated blocks of outputs, by digests (hashes) of the blocks.

A row is one output. Let s be the probability that two independent rows are equal. Then two blocks
of r independent rows are equal with probability s^r. The collision entropy of a row is -ln s. For
example, if each output is a word that is kept with probability .99, s is about .98, and two blocks
of a hundred rows are equal with probability .13. So equal blocks may be due to chance. An upper
confidence limit of s is computed from pairs of pilot rows (first rows of an audit). If two of B
blocks are equal and B^2 s^r / 2 < 2^-40, dpcore raises an error.
"""

from __future__ import annotations

import functools
import hashlib
import math
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..bounds import limits
from ..errors import invalid
from ..events.event import Batch, move_to_host
from ..streams import COUNT

_CHANCE_EXPONENT: Final = 40.0 * math.log(2.0)
"""Minus the logarithm of the probability below which chance is excluded."""
_ENTROPY_LIMIT_LEVEL: Final = 1e-6
"""Error probability of the confidence limit for the probability s that two rows are equal."""
_MARKED_ROW_NUMBERS: Final = (16, 32, 64, 128, 1024, 8192, 65536)
"""Numbers of first rows that have a digest, so that calls of different sizes can be compared."""
_LOG_BLOCK_NUMBER: Final = 20.0 * math.log(2.0)
"""Logarithm of the number of blocks for which digests of first rows are sufficient."""
MOST_FOLLOWED: Final = 2**12
"""Number of blocks, for each purpose of draws, that are compared one by one and in sequences. For
later blocks, only some digests (hashes) are kept."""
_MAX_KEPT_DIGESTS: Final = 2**16
"""Number of digests of counted blocks that are kept. If there are more, only digests with enough
leading zero bits are kept, so that equal blocks are kept or dropped together."""
_PILOT_ROWS: Final = 2**15
"""Number of rows of a pilot block in which pairs are compared. More pairs are not needed."""
_MAX_ROW_BYTES: Final = 64
"""Largest number of bytes of a row. A longer row is replaced by one number."""
_MAX_FOLLOWED_RUNS: Final = 4
"""Number of runs of equal blocks that are followed at the same time."""

_CALL_ORDER_SIDE: Final = 2
"""Number used in the place of the side, for blocks numbered in the order of calls."""

Where = tuple[int, int, int]
"""Purpose of the draws, side (0 for x, 1 for x') and number of a block."""


class Collisions(NamedTuple):
    """Number of compared pairs of outputs, and number of pairs with equal outputs.

    Each output is in at most one pair.
    """

    pairs: int = 0
    equal: int = 0

    @property
    def entropy_lower(self) -> float:
        """Lower confidence limit of the collision entropy of an output.

        The collision entropy is -ln s, where s is the probability that two outputs are equal. The
        limit holds with probability 1 - 1e-6. It is 0 if no pairs of outputs were compared.
        """
        return _entropy_lower_bound(self.pairs, self.equal)

    def add_collisions(self, other: Collisions) -> Collisions:
        """Return the sum of these counts of pairs and the counts in `other`."""
        return Collisions(self.pairs + other.pairs, self.equal + other.equal)


@functools.lru_cache(maxsize=64)
def _entropy_lower_bound(pairs: int, equal: int) -> float:
    return 0.0 if pairs == equal else -math.log(limits(equal, pairs, _ENTROPY_LIMIT_LEVEL)[1])


def is_equality_of_blocks_negligible(entropy: float, rows: float, blocks: int = 1) -> bool:
    """Return True if two independent blocks of outputs are almost certainly different.

    Let s be the probability that two outputs are equal. For B blocks of r outputs, the result is
    True if ``B^2 s^r / 2 < 2^-40``. If B is 1 (a single comparison of two blocks), the result is
    True if ``s^r < 2^-40``.

    Args:
        entropy: lower limit of -ln s.
        rows: number r of outputs in a block.
        blocks: number B of blocks that are compared with each other.
    """
    pairs = 2.0 * math.log(blocks) - math.log(2.0) if blocks > 1 else 0.0
    return rows * entropy - pairs > _CHANCE_EXPONENT


class Hashes(NamedTuple):
    """Hashes of the outputs of one call, to detect whether later calls repeat these outputs.

    Args:
        rows: number of outputs of the call.
        digests: dictionary: a key is a number n, and its value is the hash of the first n outputs.
        collisions: number of pairs of outputs that were compared, and number of equal pairs. Pairs
            are compared only in the first draws of an audit; otherwise both numbers are 0.
    """

    rows: int
    digests: dict[int, bytes]
    collisions: Collisions

    def longest_prefix_hash(self, least_rows: float) -> bytes | None:
        """Return the stored hash that covers the largest number of outputs.

        The result is None if this hash covers fewer than `least_rows` outputs.

        Args:
            least_rows: least number of hashed outputs for which equal hashes cannot be due to
                chance, see `Replays.rows_needed`. 0 means that chance is always possible, and the
                result is None.
        """
        rows = max(self.digests, default=0)
        return self.digests[rows] if rows >= least_rows > 0.0 else None


NO_MARK: Final = Hashes(0, {}, Collisions())
"""Value of `Hashes` without any information about a call."""


def begins_with_zeros(digest: bytes, zeros: int) -> bool:
    """Return True if the first `zeros` bits of a hash (a byte string) are zero."""
    return int.from_bytes(digest[:8], "big") >> (64 - zeros) == 0


def hash_prefixes(outputs: npt.NDArray[Any] | Batch, needed: float, pilot: bool) -> Hashes:
    """Compute hashes of the outputs of one call, as a `Hashes`.

    Args:
        outputs: outputs of shape `(size, ...)` and any type.
        needed: number of outputs to hash. With fewer, two blocks could have equal hashes by chance.
            Further outputs are not hashed.
        pilot: True to count pairs of equal outputs, too. This is done in the first draws of an
            audit.
    """
    size = len(outputs)
    rungs = list(_iterate_prefix_sizes(size, needed))
    looked = rungs[-1] if rungs else 0
    paired = min(size, _PILOT_ROWS) if pilot else 0
    rows = encode_rows(move_to_host(outputs[: max(looked, paired)])) if looked or paired else None
    if rows is None:
        return Hashes(size, {}, Collisions())
    first, digests = 0, {}
    digest = hashlib.blake2b(str(rows.shape[1]).encode(), digest_size=16)
    for rung in rungs:
        digest.update(rows[first:rung].tobytes())
        digests[rung], first = digest.copy().digest(), rung
    return Hashes(size, digests, compare_disjoint_pairs(rows[:paired]) if paired else Collisions())


def _iterate_prefix_sizes(size: int, needed: float) -> Iterator[int]:
    """Yield increasing numbers n, for digests of the first n rows, until n reaches `needed`."""
    for rung in (*_MARKED_ROW_NUMBERS, size):
        if needed <= 0.0 or size == 0:
            return
        yield min(rung, size)
        if rung >= min(size, needed):
            return


def compare_disjoint_pairs(rows: npt.NDArray[np.uint8]) -> Collisions:
    """Compare the first row with the second, the third with the fourth, and so on.

    The result is the number of compared pairs and the number of equal pairs.

    Args:
        rows: encoded outputs, one in each row.
    """
    pairs = len(rows) // 2
    same = (rows[: 2 * pairs : 2] == rows[1 : 2 * pairs : 2]).all(axis=1)
    return Collisions(pairs, int(np.count_nonzero(same)))


def encode_rows(outputs: npt.NDArray[Any]) -> npt.NDArray[np.uint8] | None:
    """Encode each output as a row of bytes. Different outputs almost always have different rows.

    Args:
        outputs: outputs of shape `(size, ...)` and any type.

    Returns:
        Bytes of shape `(size, width)`. Outputs of many bytes are replaced by hashes of 8 bytes. Two
        NaN with equal bits give equal rows, and 0.0 and -0.0 give different rows. The width does
        not depend on the lengths of strings. The result is None if the outputs are objects that
        cannot be pickled.
    """
    size, entries = len(outputs), math.prod(outputs.shape[1:])
    if outputs.dtype.names is not None:
        # Field by field, because the padding bytes of a structure are arbitrary.
        parts = [encode_rows(outputs[name]) for name in outputs.dtype.names]
        encoded = [part for part in parts if part is not None]
        return np.hstack(encoded) if encoded and len(encoded) == len(parts) else None
    if outputs.dtype.kind not in "biufcmMVUS":
        return _hash_objects(outputs.astype(object).reshape(size, entries))
    if outputs.dtype.kind in "US":
        return _hash_strings(np.ascontiguousarray(outputs).reshape(size, entries))
    if size == 0 or outputs.dtype.itemsize * entries == 0:
        return np.empty((size, 0), np.uint8)
    rows = np.ascontiguousarray(outputs).reshape(size, entries).view(np.uint8)
    wide = rows.shape[1] > _MAX_ROW_BYTES and rows.shape[1] % 8 == 0
    return _hash_rows_of_words(rows.view(np.uint64)).view(np.uint8) if wide else rows


def _hash_rows_of_words(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Compute a 64-bit hash of each row of 64-bit words.

    The hash is a product modulo 2^64 of the words and odd numbers.

    Such a product loses the high bits of a word, and floats such as 1.0 have only high bits.
    Therefore the high bits are first mixed into the low bits.
    """
    mixed = words >> np.uint64(32)
    mixed ^= words
    folded: npt.NDArray[np.uint64] = mixed @ _fixed_odd_hash_multipliers(words.shape[1])
    return folded.reshape(-1, 1)


@functools.lru_cache(maxsize=8)
def _fixed_odd_hash_multipliers(width: int) -> npt.NDArray[np.uint64]:
    """Return fixed random odd numbers, which are the same on every machine."""
    return np.random.PCG64(width).random_raw(width) | np.uint64(1)


def _hash_objects(outputs: npt.NDArray[Any]) -> npt.NDArray[np.uint8] | None:
    """Compute a digest of every row of objects, from the pickled bytes of the objects.

    The `repr` of an object is not used, because it may be equal for different objects.
    """
    try:
        rows = [
            hashlib.blake2b(pickle.dumps(row, 4), digest_size=16).digest()
            for row in outputs.tolist()
        ]
    except Exception:
        # A user's class may raise any error; its outputs are then not compared.
        return None
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(outputs), 16)


def _hash_strings(outputs: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Compute a 64-bit hash of every string, a polynomial in its characters.

    NUL characters at the end of a string are ignored.
    """
    size, entries = outputs.shape
    letter = np.uint32 if outputs.dtype.kind == "U" else np.uint8
    codes = np.zeros((size, entries), np.uint64)
    width = outputs.dtype.itemsize // np.dtype(letter).itemsize
    if size and entries and width:
        native = outputs.astype(outputs.dtype.newbyteorder("="), copy=False)
        letters = native.view(letter).reshape(size, entries, width).astype(np.uint64)
        power = 1
        for place in range(width):
            power = power * 0x9E3779B97F4A7C15 % 2**64
            codes += letters[:, :, place] * np.uint64(power)
    return codes.view(np.uint8).reshape(size, 8 * entries)


class _RepeatedRun(NamedTuple):
    """Run of consecutive blocks whose outputs are equal to a run of earlier blocks.

    Args:
        apart: distance to the earlier run, as a number of blocks. 0 if the earlier run was drawn
            for another purpose or on the other input of the pair.
        length: number of blocks.
        rows: number of rows of the shortest block.
    """

    apart: int
    length: int
    rows: int

    @property
    def disjoint_repeated_rows(self) -> int:
        """Number of rows in those pairs of equal blocks that have no block in common.

        If a random stream has period 1, all blocks are equal, and a block is part of two pairs.
        Pairs with a common block are not independent. Let p be the probabilities of the values of a
        row, and s the sum of p^2. Three blocks of r rows are equal with probability (sum of p^3)^r,
        which is more than s^(2r).
        """
        if self.apart == 0 or self.length <= self.apart:
            return self.length * self.rows
        whole, rest = divmod(self.length, self.apart)
        pairs = (self.apart - rest) * -(-whole // 2) + rest * -(-(whole + 1) // 2)
        return pairs * self.rows


@dataclass
class _BlockOrder:
    """Record of the blocks drawn so far, in one order, and of runs of equal blocks.

    The order is either by block number on each of x and x', or by call.

    If outputs have only a few different values, two equal blocks may be due to chance, but a long
    run of equal blocks is not.

    Args:
        whole: dictionary from a block to the digest of all its outputs.
        places: latest block that has a given digest.
        block_of: block of each call. Empty if the order is by block number.
    """

    whole: dict[Where, bytes] = field(default_factory=dict)
    places: dict[bytes, Where] = field(default_factory=dict)
    block_of: dict[Where, Where] = field(default_factory=dict)
    _blocks: int = 0
    _runs: dict[tuple[int, int], tuple[int, dict[Where, _RepeatedRun]]] = field(
        default_factory=dict
    )
    _used: set[tuple[int, Where]] = field(default_factory=set)

    def find_earlier(self, here: Where, mark: Hashes, entropies: Sequence[float]) -> Where | None:
        """Find an earlier block that is equal to the block `here`, if chance is excluded.

        Args:
            here: the block.
            mark: hashes of the outputs of the block.
            entropies: lower limits of the collision entropy of a row on x, on x', and on either
                input.
        """
        self._blocks += 1
        whole = mark.digests.get(mark.rows)
        rows, there = self._most_shared_rows_and_block(here, mark)
        self._store_block_hashes(here, mark, whole)
        if there is None:
            if self.block_of and whole is not None:
                self._extend_runs(here, mark, {})
            return None
        apart = 0 if self.block_of or there[:2] != here[:2] else abs(here[2] - there[2])
        runs = {there: _RepeatedRun(apart, 1, rows)}
        if whole is not None and self.whole.get(there) == whole:
            runs = self._extend_runs(here, mark, runs)
        for place, run in runs.items():
            # Two different distributions do not collide more often: sum p q <= sqrt(sum p^2 sum
            # q^2).
            entropy = (entropies[here[1]] + entropies[place[1]]) / 2.0
            if is_equality_of_blocks_negligible(entropy, run.disjoint_repeated_rows, self._blocks):
                return place
        return None

    def _most_shared_rows_and_block(self, here: Where, mark: Hashes) -> tuple[int, Where | None]:
        """Return the largest number of first rows that an earlier block shares, and this block."""
        for rows, digest in reversed(mark.digests.items()):
            there = self.places.get(digest)
            if there is not None and there != here:
                return rows, there
        return 0, None

    def _store_block_hashes(self, here: Where, mark: Hashes, whole: bytes | None) -> None:
        if whole is not None:
            self.whole[here] = whole
        for digest in mark.digests.values():
            # The latest block is stored, so that a stream of period 1 makes one long run.
            self.places[digest] = here

    def _extend_runs(
        self, here: Where, mark: Hashes, runs: dict[Where, _RepeatedRun]
    ) -> dict[Where, _RepeatedRun]:
        """Return the runs of equal blocks that end with the block `here`.

        The keys are the earlier blocks that are equal to the block `here`.
        """
        purpose, side, number = here
        last, before = self._runs.get((purpose, side), (-1, {}))
        for place, run in before.items() if last == number - 1 else ():
            following = (*place[:2], place[2] + 1)
            lag, call = number - following[2], self.block_of.get(following)
            if self.whole.get(following) == self.whole[here]:
                runs[following] = run
                if not self.block_of or (lag, following) not in self._used:
                    # For calls, only pairs that share no block are counted.
                    rows = min(run.rows, mark.rows)
                    runs[following] = run._replace(length=run.length + 1, rows=rows)
                    self._used.add((lag, here))
            elif call is not None and call[1] != self.block_of[here][1]:
                # Outputs on two different inputs show no repetition if they differ.
                runs[following] = run
        longest = sorted(runs, key=lambda place: -runs[place].length)[:_MAX_FOLLOWED_RUNS]
        self._runs[purpose, side] = (number, {place: runs[place] for place in longest})
        return self._runs[purpose, side][1]


@dataclass
class Replays:
    """Hashes of the blocks of an audit, to detect a block that repeats an earlier block.

    A block consists of the outputs of one call. The first 4,096 blocks are compared with each other
    in detail. Each later block is compared only by one hash.
    """

    zeros: int = 0
    digests: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    _numbers: _BlockOrder = field(default_factory=_BlockOrder)
    _calls: _BlockOrder = field(default_factory=_BlockOrder)
    _counted: dict[Where, Collisions] = field(default_factory=dict)
    _collisions: dict[int, Collisions] = field(default_factory=dict)

    def rows_needed(self, purpose: int, side: int) -> float:
        """Compute the number of successive equal outputs that chance cannot explain.

        The result is 0 if any number of equal outputs may be due to chance. It is infinite before
        the first outputs were compared.

        Args:
            purpose: code of the purpose of the draws, such as 2 for counting.
            side: 0 for outputs on x, 1 for outputs on x'.
        """
        if purpose != COUNT and side not in self._collisions:
            return math.inf
        entropy = self.collisions[side].entropy_lower
        return (_CHANCE_EXPONENT + 2.0 * _LOG_BLOCK_NUMBER) / entropy if entropy > 0.0 else 0.0

    @property
    def collisions(self) -> tuple[Collisions, Collisions]:
        """For x and for x': the number of compared pairs of outputs, and the number of equal pairs.

        The pairs are from the pilot (the first draws of an audit).
        """
        first, second = (self._collisions.get(side, Collisions()) for side in (0, 1))
        return first, second

    def restore(
        self,
        collisions: tuple[Collisions, Collisions],
        digests: dict[bytes, tuple[int, int]],
        zeros: int,
    ) -> None:
        """Set the state of this object to that of the same object in another process of the audit.

        Args:
            collisions: attribute `collisions` of the object in the other process.
            digests: attribute `digests` of the object in the other process.
            zeros: attribute `zeros` of the object in the other process.
        """
        self._collisions = dict(enumerate(collisions))
        self.digests, self.zeros = dict(digests), zeros

    def find_earlier_block(self, here: Where, mark: Hashes, turn: int) -> Where | None:
        """Find an earlier block whose outputs are equal to those of a given block.

        An earlier block is returned only if chance cannot be the reason for the equal outputs.

        Args:
            here: the given block, as a triple: code of the purpose of the draws, 0 for x or 1 for
                x', number of the block.
            mark: hashes of the outputs of the given block.
            turn: order of drawing. Two blocks have the same number: one is drawn on x, and one on
                x'. `turn` is 0 if the given block is the first of these two blocks, otherwise 1.

        Returns:
            The earlier block as a triple, or None if such a block was not found.
        """
        self._count_equal_pilot_pairs(here, mark)
        entropies = [pairs.entropy_lower for pairs in self.collisions]
        entropies.append(min(entropies))
        block = self._numbers.find_earlier(here, mark, entropies)
        # Only the order of calls shows a stream that repeats by call.
        call = (here[0], _CALL_ORDER_SIDE, 2 * here[2] + turn)
        self._calls.block_of[call] = here
        same = self._calls.find_earlier(call, mark, entropies)
        return block if block is not None or same is None else self._calls.block_of[same]

    def find_and_store_digest(self, digest: bytes, here: Where) -> Where | None:
        """Find an earlier block with the hash `digest`, and store this hash.

        The result is None if such a block is not found. It is also None if the hash begins with
        fewer zero bits than the hashes that are stored.

        Args:
            digest: hash of the outputs of a block that was counted.
            here: the block, as a triple: code of the purpose of the draws, 0 for x or 1 for x',
                number of the block.
        """
        if not begins_with_zeros(digest, self.zeros):
            return None
        side, number = self.digests.setdefault(digest, here[1:])
        there = (COUNT, side, number)
        if there == here:
            there = self._numbers.places.get(digest, here)
        while len(self.digests) > _MAX_KEPT_DIGESTS:
            self.zeros += 1
            items = self.digests.items()
            self.digests = {
                digest: place for digest, place in items if begins_with_zeros(digest, self.zeros)
            }
        return None if there == here else there

    def _count_equal_pilot_pairs(self, here: Where, mark: Hashes) -> None:
        """Count equal pairs of pilot rows. If a call has one row, two calls are compared."""
        purpose, side, number = here
        pairs, whole = mark.collisions, mark.digests.get(mark.rows)
        if purpose != COUNT and mark.rows == 1 and number % 2:
            before = self._numbers.whole.get((purpose, side, number - 1))
            if before is not None and whole is not None:
                pairs = Collisions(1, int(before == whole))
        counted = self._counted.get(here, Collisions())
        if pairs.pairs > counted.pairs:
            # A block that was partly drawn before is counted once.
            self._counted[here] = pairs
            more = Collisions(pairs.pairs - counted.pairs, pairs.equal - counted.equal)
            self._collisions[side] = self._collisions.get(side, Collisions()).add_collisions(more)


SEEDED_BY: Final = "the rng it is given"
"""Source that outputs should get their randomness from, unless `seeded_by` names another."""

_PURPOSE_NAMES = ("pilot", "selection", "count", "sample")


def make_repeated_block_error(
    name: str, first: Where, second: Where, seeded_by: str = SEEDED_BY
) -> ValueError:
    """Return the ValueError for a mechanism that returned the same outputs in two blocks.

    Args:
        name: name of the mechanism.
        first: first block, as a triple: code of the purpose of the draws, 0 for x or 1 for x',
            number of the block.
        second: second block, in the same form.
        seeded_by: source of randomness that the message tells the user to use.
    """
    blocks = [
        f"{_PURPOSE_NAMES[purpose]} block {number} on {'x_prime' if side else 'x'}"
        for purpose, side, number in (first, second)
    ]
    requirement = f"drawn anew in every call from {seeded_by}"
    return invalid(
        f"outputs of {name}", requirement, f"equal outputs for {blocks[0]} and {blocks[1]}"
    )
