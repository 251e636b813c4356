"""Random streams: seeds, blocks, arrays to fill, and the global generators.

A stream of random bits depends on four numbers: the seed, the purpose of the draws, the side (x or
x') and the number of the block. It does not depend on the distribution of the noise. So Laplace
noise and Gaussian noise are computed from the same bits if these four numbers are equal.

dpcore sets the states of the global generators of Python, numpy and torch from a stream, and
restores the old states later. A Mersenne twister gets a full state of 624 words of 32 bits instead
of a seed. The reason is that the CPU generator of torch uses only 32 bits of a seed. Among 10^5
blocks, some seeds of 32 bits would be equal.
"""

from __future__ import annotations

import functools
import gc
import os
import random
import secrets
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import AssumptionWarning, integer, invalid, mistyped
from .packages import attribute_if_imported, get_loaded_module, has_all, is_tensor

Rng = int | np.random.Generator | None
"""Accepted values of `rng=`: a seed, a generator, or None for fresh entropy."""

PILOT: Final = 0
SELECTION: Final = 1
COUNT: Final = 2
SAMPLE: Final = 3
PROBE: Final = 4
PAIRS: Final = 5
"""`PILOT` to `PAIRS` are codes for the purposes of draws. The Rust code uses the same codes. Draws
for different purposes never share a random number."""

BLOCK_ELEMENTS: Final = 2**17
"""Number of elements in a block of trials. Counting a block takes about 20 microseconds, and numpy
code takes about two milliseconds for a block."""

BLOCK_ELEMENTS_ON: Final = {"cuda": 2**22}
"""Number of elements in a block by type of device. GPU calls start slowly, but compute fast."""

MOST_DRAWS: Final = 2**63

_NUMPY_RANDOM: Any = np.random
"""numpy's global generator, typed as Any, because numpy's stubs leave out many functions."""

_TWISTER_WORDS: Final = 624
"""Words of 32 bits in the state of a Mersenne twister."""
_TORCH_HEADER_BYTES: Final = 24
"""Bytes before the words in torch's state: seed (8), `left` (4), `seeded` (4) and `next` (8)."""

_DrawFunction = Callable[..., Any]


def to_seed(rng: Rng) -> int:
    """Convert the argument `rng` of a function to a seed, an int in [0, 2**63).

    Args:
        rng: None, an int in [0, 2**63) or a numpy Generator. If `rng` is an int, it is the seed. If
            `rng` is a Generator, the Generator draws the seed. If `rng` is None, the operating
            system draws the seed. A forked process then has a different seed from its parent.

    Raises:
        TypeError: if `rng` has another type.
        ValueError: if an int is out of range.
    """
    if rng is None:
        return secrets.randbits(63)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        return integer("rng", rng, 0, 2**63 - 1)
    raise mistyped("rng", "None, an int in [0, 2**63) or a numpy.random.Generator", rng)


def threads_of(threads: Any, default: int | None = None) -> int:
    """Check the argument `threads` of a function, and return the number of threads.

    If `threads` is None, the result is `default`. If `default` is None too, the result is the
    number of CPU cores.
    """
    if threads is None:
        return _core.cores() if default is None else default
    return integer("threads", threads, 1, _core.MOST_THREADS)


def block_trials(elements: int, device: str = "cpu") -> int:
    """Compute the number of trials that dpcore draws together, in one block.

    The number does not depend on the machine.

    Args:
        elements: how many numbers one output contains.
        device: type of the device on which a torch module draws outputs, such as "cpu" or "cuda".
    """
    return max(1, BLOCK_ELEMENTS_ON.get(device, BLOCK_ELEMENTS) // max(1, elements))


def trials_per_thread(trials: int, threads: int) -> int:
    """Compute how many trials one thread draws, if all threads draw equally many trials.

    The result is rounded down, but is at least 1.
    """
    return max(1, trials // threads)


def check_size(size: int, dim: int) -> int:
    """Check that a number of outputs is at least 0 and not too large, and return it as an int.

    `size` outputs of `dim` numbers each must be addressable in memory.
    """
    size = integer("size", size, 0)
    if size * dim >= MOST_DRAWS // 8:
        raise invalid("size", "small enough that size * dim * 8 bytes can be addressed", size)
    return size


def prepare_out_array(
    out: npt.NDArray[Any] | None, shape: tuple[int, int], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    """Return the array that a function fills with its results: `out`, or a new array.

    If `out` is given, its shape, dtype and memory layout are checked.

    Args:
        out: array that the user passed, or None to make a new array.
        shape: required shape of the array.
        dtype: required dtype of the array: float64 or float32.

    Raises:
        TypeError: if `out` or `dtype` has the wrong type.
        ValueError: if `dtype` is not float64 or float32, or if the dtype, the shape or the memory
            layout of `out` is wrong.
    """
    try:
        dtype_of_array = np.dtype(dtype)
    except Exception:
        # numpy parses strings such as "f8,(3" as Python code and shows objects by their own repr: a
        # SyntaxError or any other exception can be raised.
        raise mistyped("dtype", "float64 or float32", dtype) from None
    if dtype_of_array not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise invalid("dtype", "float64 or float32", dtype)
    if out is None:
        return np.empty(shape, dtype_of_array)
    if not isinstance(out, np.ndarray):
        raise mistyped("out", "a numpy array", out)
    if out.shape != shape or out.dtype != dtype_of_array:
        requirement = f"of shape {shape} and type {dtype_of_array}"
        raise invalid("out", requirement, (out.shape, str(out.dtype)))
    if not out.flags.aligned:
        requirement = f"aligned, its address a multiple of {dtype_of_array.itemsize}"
        raise invalid("out", requirement, out.ctypes.data)
    if not (out.flags.c_contiguous and out.flags.writeable):
        raise invalid("out", "C-contiguous and writeable", out.flags)
    return out


@contextmanager
def seeded_globals(rng: np.random.Generator) -> Iterator[None]:
    """Return a context manager that seeds the global random generators of Python, numpy and torch.

    At the end of the `with` block, the generators get back their previous states.

    torch is seeded only if it has been imported.

    Args:
        rng: numpy Generator that draws the new states.
    """
    python, state = random.getstate(), _numpy_global_state()
    random.setstate((3, (*_draw_words(rng).tolist(), _TWISTER_WORDS), None))
    # Replaced instead of seeded: the user's own bit generator may have no method to seed it.
    _NUMPY_RANDOM.set_bit_generator(_make_twister(rng))
    try:
        if get_loaded_module("torch") is not None:
            with seeded_torch(rng):
                yield
        else:
            yield
    finally:
        random.setstate(python)
        _set_numpy_global_state(state)


@contextmanager
def seed_and_hide_warnings(*words: int) -> Iterator[None]:
    """Return a context manager that seeds the global random generators and hides warnings.

    The integers `words` determine the seeds. At the end of the `with` block, the generators get
    back their previous states, and warnings are shown again.
    """
    with seeded_globals(np.random.default_rng(words)), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def seeded_torch(rng: np.random.Generator) -> Iterator[None]:
    """Return a context manager that seeds the default random generators of torch.

    At the end of the `with` block, the generators get back their previous states.

    torch has one default generator for the CPU, and one for each CUDA device. Each of them gets its
    own random state or seed.

    Args:
        rng: numpy Generator that draws the new states and seeds.
    """
    generators = torch_generators()
    states = [generator.get_state() for generator in generators]
    for generator in generators:
        if generator.device.type == "cpu":
            _fill_torch(generator, _draw_words(rng))
        else:
            generator.manual_seed(int(rng.integers(2**64, dtype=np.uint64)))
    try:
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)


_seeded_in = os.getpid()


def reseed_a_forked_child() -> None:
    """Seed the global random generators again if this process is a forked child process.

    Otherwise all child processes of a process would draw the same random numbers.
    """
    global _seeded_in
    if os.getpid() != _seeded_in:
        _seeded_in = os.getpid()
        random.seed()
        _NUMPY_RANDOM.seed()
        for generator in torch_generators():
            generator.seed()


def torch_generators() -> list[Any]:
    """List the default random generators of torch: for the CPU, and for CUDA devices in use.

    If torch is not imported, the list is empty.
    """
    torch = get_loaded_module("torch")
    # A module that replaces torch has no default generator.
    generators = [torch.default_generator] if has_all(torch, "default_generator") else []
    if generators and torch.cuda.is_initialized():
        generators += torch.cuda.default_generators
    return generators


def _draw_words(rng: np.random.Generator) -> npt.NDArray[np.uint32]:
    return rng.integers(2**32, size=_TWISTER_WORDS, dtype=np.uint32)


def _make_twister(rng: np.random.Generator) -> np.random.MT19937:
    twister = np.random.MT19937(0)
    twister.state = {
        "bit_generator": "MT19937",
        "state": {"key": _draw_words(rng), "pos": _TWISTER_WORDS},
    }
    return twister


def _fill_torch(generator: Any, words: npt.NDArray[np.uint32]) -> None:
    """Set the full state of torch's Mersenne twister, as after `manual_seed`."""
    seeded = _torch_state_if_layout_known()
    if seeded is None:
        generator.manual_seed(int.from_bytes(words[:2].tobytes(), sys.byteorder))
        return
    state = seeded.copy()
    _state_to_words(state)[:] = words
    generator.set_state(get_loaded_module("torch").from_numpy(state))


def _state_to_words(state: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Return the words of a torch state as 64-bit numbers, in each of which 32 bits are used."""
    return state[_TORCH_HEADER_BYTES : _TORCH_HEADER_BYTES + 8 * _TWISTER_WORDS].view(np.uint64)


@functools.cache
def _torch_state_if_layout_known() -> npt.NDArray[np.uint8] | None:
    """Return a state of torch's Mersenne twister, or None if its layout is not as expected.

    After `manual_seed`, a known recursion gives all words from the first word. The function uses
    this recursion to detect another layout.
    """
    torch = get_loaded_module("torch")
    state: npt.NDArray[np.uint8] = (
        torch.Generator().manual_seed(_TORCH_HEADER_BYTES).get_state().numpy().copy()
    )
    word, expected = _TORCH_HEADER_BYTES, [_TORCH_HEADER_BYTES]
    for place in range(1, _TWISTER_WORDS):
        word = (1812433253 * (word ^ (word >> 30)) + place) % 2**32
        expected.append(word)
    if (
        state.size >= _TORCH_HEADER_BYTES + 8 * _TWISTER_WORDS
        and _state_to_words(state).tolist() == expected
    ):
        return state
    warnings.warn(
        "this torch keeps the state of its generator in an unknown layout: blocks are seeded "
        "with 32 bits, and of 10^5 blocks some may be equal",
        AssumptionWarning,
        stacklevel=2,
    )
    return None


class Generators:
    """Collection of random generators of this process, to read, compare and restore their states.

    Args:
        states: two functions for each generator: the first function returns the state, and the
            second function sets the state. A generator whose state cannot be read is left out.
        globals: number of global generators. They come first in the list `states`.
    """

    def __init__(
        self, states: list[tuple[Callable[[], Any], Callable[[Any], Any]]], globals: int = 0
    ) -> None:
        self._states = [state for state in states if _is_state_readable(state[0])]
        self._globals = globals
        self._first = self._kept = self.read_states()

    @classmethod
    def collect_defaults(cls) -> Generators:
        """Return a collection of the global random generators of Python, numpy and torch."""
        states = [
            (random.getstate, random.setstate),
            (_numpy_global_state, _set_numpy_global_state),
        ]
        return cls(
            states
            + [(generator.get_state, generator.set_state) for generator in torch_generators()]
        )

    @classmethod
    def collect_from_memory(cls) -> Generators:
        """Return a collection of all random generators in memory, global generators first."""
        state_functions = cls.collect_defaults()._states
        globals = len(state_functions)
        reached = _core.find_instances(gc.get_objects(), _list_generator_kinds())
        # By identity: most bit generators are found a second time, as part of a numpy generator.
        one_each = {id(generator): generator for generator in map(_bit_generator_of, reached)}
        state_functions += map(_state_functions, one_each.values())
        return cls(state_functions, globals)

    def read_states(self) -> list[Any]:
        """Return the current state of each random generator in this collection."""
        return [get() for get, _ in self._states]

    def moved_by(self, call: Callable[[], Any]) -> tuple[Any, bool]:
        """Call a function; return its result, and True if the call changed a generator's state.

        The generators are the random generators in this collection.
        """
        before = self.read_states()
        answer = call()
        return answer, _state_to_comparable(before) != _state_to_comparable(self.read_states())

    def _set_states(self, states: list[Any]) -> None:
        for (_, put), state in zip(self._states, states, strict=True):
            put(state)

    def save_before_draw(self, draw: _DrawFunction) -> _DrawFunction:
        """Return a function that first stores the states of the generators and then calls `draw`.

        The generators are the random generators in this collection. The method `restore_before`
        restores the stored states.
        """

        def drawn(*arguments: Any) -> Any:
            self._kept = self.read_states()
            return draw(*arguments)

        return drawn

    def restore_before(self, draw: _DrawFunction) -> _DrawFunction:
        """Return a function that first restores the states of the generators and then calls `draw`.

        The generators are the random generators in this collection. The restored states are those
        that the method `save_before_draw` stored.
        """

        def drawn(*arguments: Any) -> Any:
            self._set_states(self._kept)
            return draw(*arguments)

        return drawn

    def global_and_other_changed(self) -> tuple[bool, bool]:
        """Return two bools: whether a global generator changed, and whether another one changed.

        A generator changed if its state differs from its state when this collection was made.

        The method sets the global generators back to their states when this collection was made.
        """
        size = self._globals
        first = _state_to_comparable(self._first)
        moved = first[:size] != _state_to_comparable(self.read_states())[:size]
        for (_, put), state in zip(self._states[:size], self._first, strict=False):
            put(state)
        return moved, first != _state_to_comparable(self.read_states())

    def __enter__(self) -> Generators:
        return self

    def __exit__(self, *error: object) -> None:
        self._set_states(self._first)


def _state_to_comparable(state: Any) -> Any:
    """Convert the state of a generator to values that can be compared by `==`."""
    if isinstance(state, dict):
        return {key: _state_to_comparable(value) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        # A twister of Python has 625 integers, which `==` compares without conversion.
        return state if set(map(type, state)) <= {int} else tuple(map(_state_to_comparable, state))
    if isinstance(state, np.ndarray):
        return state.tobytes()
    return state.numpy().tobytes() if is_tensor(state) else state


def _list_generator_kinds() -> list[type]:
    """Return the classes of generators that `Generators.collect_from_memory` collects."""
    kinds: list[type] = [
        random.Random,
        np.random.Generator,
        np.random.BitGenerator,
        np.random.RandomState,
    ]
    if (kind := attribute_if_imported("torch", "Generator")) is not None:
        kinds.append(kind)
    place = 0
    while place < len(kinds):
        kinds += type.__subclasses__(kinds[place])
        place += 1
    return [kind for kind in kinds if not issubclass(kind, random.SystemRandom)]


def _bit_generator_of(generator: Any) -> Any:
    is_numpy = isinstance(generator, np.random.Generator)
    return generator.bit_generator if is_numpy else generator


def _state_functions(generator: Any) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    """Return two functions for a generator: one that reads its state and one that sets it."""
    if isinstance(generator, random.Random):
        return generator.getstate, generator.setstate
    if isinstance(generator, np.random.RandomState):
        return partial(generator.get_state, legacy=False), generator.set_state
    if isinstance(generator, attribute_if_imported("torch", "Generator") or ()):
        return generator.get_state, generator.set_state
    return partial(getattr, generator, "state"), partial(setattr, generator, "state")


def _is_state_readable(get_state: Callable[[], Any]) -> bool:
    try:
        get_state()
    except Exception:
        # A user's own bit generator may have no state.
        return False
    return True


def _numpy_global_state() -> tuple[np.random.BitGenerator, dict[str, Any]]:
    return _NUMPY_RANDOM.get_bit_generator(), _NUMPY_RANDOM.get_state(legacy=False)


def _set_numpy_global_state(state: tuple[np.random.BitGenerator, dict[str, Any]]) -> None:
    _NUMPY_RANDOM.set_bit_generator(state[0])
    # Replacing the bit generator discards a stored normal draw, the second of a pair.
    _NUMPY_RANDOM.set_state(state[1])
