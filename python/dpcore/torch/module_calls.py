"""Records of the calls in a run of a module, and each call run again on copies of its inputs.

`torch.nn.Module.__call__` is exchanged for the time of a run, as torch's own tracer does: hooks,
subclasses and modules that are nowhere registered are seen, and the user's objects are not changed.
"""

from __future__ import annotations

import copy
import random
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from ..packages import has_all, torch
from ..streams import seeded_globals, torch_generators
from .layers import LearntScale

_ATOMIC_TYPES: Final = (bool, int, float, complex, str, bytes, type(None))
_CODE_TYPES: Final = (torch.nn.Module, type, FunctionType, BuiltinFunctionType, ModuleType)

_LIVE_CHILD_SEED: Final = 2**32
"""Seeds a child that runs where its outputs were to be replayed; no replay has it."""
Key = Callable[[Any], Any]


def copy_value(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """Return a copy that no later operation changes, or the value itself if it has no copy.

    Args:
        value: tensors in any containers; modules are left as they are.
        memo: copies that were made already.
    """
    memo = {} if memo is None else memo
    if isinstance(value, (*_ATOMIC_TYPES, torch.nn.Module)):
        return value
    if id(value) in memo:
        return memo[id(value)]
    kind = type(value)
    if isinstance(value, torch.Tensor):
        copied: Any = value.detach().clone()
    elif kind in (list, tuple):
        copied = kind(copy_value(part, memo) for part in value)
    elif kind is dict:
        copied = {key: copy_value(part, memo) for key, part in value.items()}
    elif isinstance(value, tuple) and has_all(value, "_fields"):
        copied = kind(*(copy_value(part, memo) for part in value))
    else:
        try:
            copied = copy.deepcopy(value, memo)
        except Exception:
            # A generator, a lock, an open file: it is handed on as it was.
            copied = value
    memo[id(value)] = copied
    return copied


def list_leaves(value: Any) -> list[Any]:
    """List the tensors, arrays, numbers and texts in any containers and objects, in their order."""
    leaves: list[Any] = []
    held: dict[int, Any] = {}

    def walk(item: Any) -> None:
        if isinstance(item, (*_ATOMIC_TYPES, torch.Tensor, np.ndarray, np.generic)):
            leaves.append(item)
        elif id(item) not in held and not isinstance(item, _CODE_TYPES):
            # Held, so that no other object gets its number meanwhile.
            held[id(item)] = item
            leaves.append(type(item).__name__)
            if isinstance(item, Mapping):
                leaves.extend(str(key) for key in item)
            for part in _list_parts(item):
                walk(part)

    walk(value)
    return leaves


def list_tensors(value: Any) -> list[Any]:
    """List the tensors among the leaves."""
    return [leaf for leaf in list_leaves(value) if isinstance(leaf, torch.Tensor)]


def _list_parts(whole: Any) -> list[Any]:
    if isinstance(whole, Mapping):
        return list(whole.values())
    if isinstance(whole, (list, tuple, set, frozenset, deque)):
        return list(whole)
    slots = [name for cls in type(whole).__mro__ for name in vars(cls).get("__slots__", ())]
    named = {name: getattr(whole, name) for name in slots if hasattr(whole, name)}
    return list((named | vars(whole) if has_all(whole, "__dict__") else named).values())


def are_equal(left: Any, right: Any) -> bool:
    """Return True if two leaves, or lists of them, are equal; NaN equals NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(are_equal(*pair) for pair in pairs)
    if isinstance(left, torch.Tensor) and left.is_nested:
        # A nested tensor has neither a shape nor a comparison of its own.
        return bool(right.is_nested) and are_equal(list(left.unbind()), list(right.unbind()))
    if isinstance(left, torch.Tensor):
        if left.device != right.device:
            return False
        if left.layout is not torch.strided:
            left, right = left.to_dense(), right.to_dense()
    elif isinstance(left, np.generic):
        left, right = np.asarray(left), np.asarray(right)
    if isinstance(left, (torch.Tensor, np.ndarray)):
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        # NaN is not equal to itself: it exists in arrays of objects, too.
        return bool(((left == right) | ((left != left) & (right != right))).all())
    return bool(left == right or (left != left and right != right))


@dataclass(eq=False)
class Call:
    """One call of a module, as it happened.

    Args:
        module: what was called.
        key: tells it from other modules.
        args: its positional arguments before the call, cloned.
        kwargs: its keyword arguments, too.
        children: the calls that it made.
        outputs: what it returned, cloned.
        written: numbers of the tensors among its arguments that it wrote to, and what they were
            after the call.
    """

    module: Any
    key: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    children: list[Call] = field(default_factory=list)
    outputs: Any = None
    written: dict[int, Any] = field(default_factory=dict)

    def everything(self) -> Iterator[Call]:
        """Yield this call and all calls within it, in the order in which they began."""
        yield self
        for child in self.children:
            yield from child.everything()


@dataclass(frozen=True)
class Replay:
    """One call run again.

    Args:
        stages: all that shows its randomness: what it returned; its arguments, which it may have
            written to; and for every call that it made what that was and was given.
        drawn: generators that moved: "torch", "numpy", "python".
    """

    stages: list[Any]
    drawn: tuple[str, ...]

    def same(self, other: Replay) -> bool:
        """Return True if both did the same."""
        return are_equal(list_leaves(self.stages), list_leaves(other.stages))


def name_modules(module: Any) -> Key:
    """Return the modules' keys: their number; of those made on the way, the class."""
    registered = {id(part) for part in module.modules()}
    return lambda part: id(part) if id(part) in registered else type(part).__qualname__


def record_calls(
    module: Any, key: Key, check: Callable[[Any], None], args: Any, kwargs: dict[str, Any]
) -> Call:
    """Run a module once and write down every call.

    Args:
        module: the module, in the mode that it is in.
        key: tells modules apart.
        check: raises for a module that is not to be called.
        args: its positional arguments.
        kwargs: its keyword arguments.
    """
    stack = [Call(None, None, (), {})]

    def called(inner: Callable[..., Any], part: Any, args: Any, kwargs: Any, depth: int) -> Any:
        check(part)
        call = Call(part, key(part), *copy_value((args, kwargs)))
        stack.append(call)
        try:
            outputs = inner(part, *args, **kwargs)
        finally:
            stack.pop()
        before, after = list_leaves((call.args, call.kwargs)), list_leaves((args, kwargs))
        if len(before) == len(after):
            places = [k for k, now in enumerate(after) if not are_equal(before[k], now)]
            call.written = {place: copy_value(after[place]) for place in places}
        call.outputs = copy_value(outputs)
        # Not before: a call that raises, and whose parent goes on, has nothing to replay.
        stack[-1].children.append(call)
        return outputs

    args, kwargs = copy_value((args, kwargs))
    with seeded_globals(np.random.default_rng(0)), torch.no_grad(), calls_go_to(called):
        module(*args, **kwargs)
    return stack[0].children[0]


def replay_call(call: Call, key: Key, seed: int) -> Replay:
    """Run one call again on its inputs, while its children return what they returned.

    A parent that needs more of a child than its outputs makes the children run, each from a
    generator of its own that is the same in every replay.

    Args:
        call: the call.
        key: tells modules apart, as in the record.
        seed: of the global generators.
    """
    try:
        return _replay_call(call, key, seed, False)
    except Exception:
        return _replay_call(call, key, seed, True)


def _replay_call(call: Call, key: Key, seed: int, live: bool) -> Replay:
    handed: list[Any] = []
    waiting = group_by_key([] if live else call.children)

    def called(inner: Callable[..., Any], part: Any, args: Any, kwargs: Any, depth: int) -> Any:
        if depth != 1:
            # The call itself, or what a child that runs calls in its turn.
            return inner(part, *args, **kwargs)
        handed.append(copy_value((key(part), args, kwargs)))
        if waiting[key(part)]:
            return _return_recorded(waiting[key(part)].pop(0), args, kwargs)
        with seeded_globals(np.random.default_rng(_LIVE_CHILD_SEED + len(handed))):
            return inner(part, *args, **kwargs)

    args, kwargs = copy_value((call.args, call.kwargs))
    with seeded_globals(np.random.default_rng(seed)), torch.no_grad():
        before = _random_states()
        with calls_go_to(called):
            outputs = call.module(*args, **kwargs)
        after = _random_states()
    drawn = tuple(name for name in before if not are_equal(before[name], after[name]))
    return Replay([outputs, (args, kwargs), *handed], drawn)


def group_by_key(calls: Iterable[Call]) -> defaultdict[Any, list[Call]]:
    """Return the calls of each module, in their order."""
    groups: defaultdict[Any, list[Call]] = defaultdict(list)
    for call in calls:
        groups[call.key].append(call)
    return groups


def _return_recorded(child: Call, args: Any, kwargs: Any) -> Any:
    """Return what a child returned, and write what it wrote to its arguments."""
    leaves = list_leaves((args, kwargs))
    for place, now in child.written.items():
        if place < len(leaves) and isinstance(now, torch.Tensor):
            leaves[place].copy_(now)
    return copy_value(child.outputs)


@contextmanager
def calls_go_to(called: Callable[..., Any]) -> Iterator[None]:
    """Pass every call of a module in this thread through a function, with the calls around it.

    Args:
        called: `(call, module, args, kwargs, depth)`, where `depth` counts the calls around it.
    """
    inner, here, depth = torch.nn.Module.__call__, threading.get_ident(), 0

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        # The part of a noise layer that learns is code of the layer.
        if threading.get_ident() != here or isinstance(self, LearntScale):
            return inner(self, *args, **kwargs)
        depth += 1
        try:
            return called(inner, self, args, kwargs, depth - 1)
        finally:
            depth -= 1

    torch.nn.Module.__call__ = call
    try:
        yield
    finally:
        torch.nn.Module.__call__ = inner


@contextmanager
def kept_buffers(module: Any) -> Iterator[Callable[[], None]]:
    """Restore buffers at the end, and whenever the function that this yields is called.

    Running averages and power iterations move in train mode: that is not a randomness.
    """
    held = [
        (part, name, buffer, buffer.detach().clone())
        for part in module.modules()
        for name, buffer in part._buffers.items()
        if buffer is not None
    ]

    def put_back() -> None:
        with torch.no_grad():
            for part, name, buffer, value in held:
                if not are_equal(buffer, value):
                    buffer.copy_(value)
                if part._buffers.get(name) is not buffer:
                    part._buffers[name] = buffer

    try:
        yield put_back
    finally:
        put_back()


@contextmanager
def eval_mode(module: Any) -> Iterator[None]:
    """Set eval mode for a while, and then restore the mode of every part: modes may differ."""
    parts = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in parts:
            part.training = mode


def _random_states() -> dict[str, list[Any]]:
    numpy = list_leaves(np.random.get_state(legacy=False))  # noqa: NPY002 - a module may draw from it
    torchs = [source.get_state() for source in torch_generators()]
    return {"torch": torchs, "numpy": numpy, "python": [random.getstate()]}
