"""Damaged files: mutations of bytes and of JSON, and what a reader may make of them."""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

VALUES = (
    None, True, False, 0, 1, -1, 0.5, -0.5, 1e308, 2**31, 2**63, 10**40, "", "x", "inf", "nan",
    "1", "<U9999999", [], [0], [[]], {}, {"repr": "x"}, {"float": "x"}, {"record": "Pair"},
    {"dtype": "<f8", "shape": [2], "array": [1]}, {"native": "Laplace"},
)  # fmt: skip
"""Values that stand in place of others."""


def damage_bytes(content: bytes, rng: random.Random) -> bytes:
    """Change, remove, repeat or insert a few bytes, or cut the rest off."""
    at, size = rng.randrange(len(content) + 1), rng.choice((1, 1, 2, 8, 64))
    before, inside, after = content[:at], content[at : at + size], content[at + size :]
    kind = rng.randrange(6)
    if kind == 0:
        return before
    if kind == 1:
        return before + after
    if kind == 2:
        return before + inside + inside + after
    if kind == 3:
        return before + rng.randbytes(size) + inside + after
    if kind == 4 and inside:
        return before + bytes([inside[0] ^ 1 << rng.randrange(8)]) + inside[1:] + after
    return before + bytes(rng.choice(b'0123456789-.e"{}[],:') for _ in inside) + after


def damage_record(record: Any, rng: random.Random, keep: tuple[str, ...] = ()) -> Any:
    """Return plain data of which one entry, at any depth, is replaced, removed or repeated.

    Args:
        record: the plain data, which stays.
        rng: chooses.
        keep: keys of entries that stay.
    """
    changed = copy.deepcopy(record)
    places = [(inside, key) for inside, key in _iterate_places(changed) if key not in keep]
    inside, key = rng.choice(places)
    kind = rng.randrange(10)
    if kind == 0:
        del inside[key]
    elif kind == 1 and isinstance(inside, list):
        inside.insert(key, inside[key])
    elif kind < 5 and type(inside[key]) in (int, float):
        inside[key] = rng.choice((-inside[key], inside[key] + 1, inside[key] * 10**9))
    else:
        inside[key] = rng.choice(VALUES)
    return changed


def _iterate_places(value: Any) -> Iterator[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield value, key
        if isinstance(item, (dict, list)):
            yield from _iterate_places(item)


def iterate_damaged_texts(text: str, many: int, seed: int) -> Iterator[bytes]:
    """Yield damaged texts of JSON: of two, the first has other bytes and the second is JSON."""
    rng = random.Random(seed)
    for number in range(many):
        if number % 2 == 0:
            yield damage_bytes(text.encode(), rng)
        else:
            yield json.dumps(damage_record(json.loads(text), rng)).encode()


def list_bad_readings(
    contents: Iterator[bytes], read: Callable[[bytes], Any], whole: Any
) -> list[tuple[int, str]]:
    """Read damaged contents; list what is neither the same reading nor a clear error.

    Args:
        contents: of the damaged files.
        read: returns what must stay the same, such as a verdict.
        whole: what it returned before the damage.
    """
    found, errors = [], 0
    for number, content in enumerate(contents):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                reading = read(content)
            except (ValueError, TypeError) as error:
                errors += 1
                if " must " not in str(error):
                    found.append((number, f"{type(error).__name__}: {error}"))
            except Exception as error:
                found.append((number, f"{type(error).__name__}: {error}"))
            else:
                if reading != whole:
                    found.append((number, f"{reading!r} in place of {whole!r}"))
    assert errors, "no damage was an error"
    return found


def peak_memory() -> int:
    """Return the most memory that this process has had, in bytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
