"""Records of the calls in a run of a module, and repetitions of each call on copies of its inputs.

`torch.nn.Module.__call__` is replaced during a run, as torch's own tracer does. Therefore hooks,
subclasses and unregistered modules are recorded, and the user's objects are not changed.
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
"""Seed for a child that runs instead of being replayed; no replay uses this seed."""
Key = Callable[[Any], Any]


def copy_value(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """Return a copy that later operations cannot change, or the value itself if it has no copy.

    Args:
        value: tensors in any containers; modules are not copied.
        memo: copies that exist already.
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
            # Generators, locks and open files have no copy: return the value itself.
            copied = value
    memo[id(value)] = copied
    return copied


def list_leaves(value: Any) -> list[Any]:
    """List the tensors, arrays, numbers and texts in any containers and objects, in order."""
    leaves: list[Any] = []
    held: dict[int, Any] = {}

    def walk(item: Any) -> None:
        if isinstance(item, (*_ATOMIC_TYPES, torch.Tensor, np.ndarray, np.generic)):
            leaves.append(item)
        elif id(item) not in held and not isinstance(item, _CODE_TYPES):
            # Keep a reference, so that no other object gets the same id.
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
    """Return True if two leaves, or lists of leaves, are equal; NaN equals NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(are_equal(*pair) for pair in pairs)
    if isinstance(left, torch.Tensor) and left.is_nested:
        # A nested tensor has no shape and no comparison.
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
        # NaN is not equal to itself, also in arrays of objects.
        return bool(((left == right) | ((left != left) & (right != right))).all())
    return bool(left == right or (left != left and right != right))


@dataclass(eq=False)
class Call:
    """One recorded call of a module.

    Args:
        module: called module.
        key: key that identifies the module.
        args: copies of its positional arguments before the call.
        kwargs: copies of its keyword arguments before the call.
        children: calls that it made.
        outputs: copy of its return value.
        written: indices of the argument tensors that it wrote to, with their values after the
            call.
    """

    module: Any
    key: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    children: list[Call] = field(default_factory=list)
    outputs: Any = None
    written: dict[int, Any] = field(default_factory=dict)

    def everything(self) -> Iterator[Call]:
        """Yield this call and all calls within it, in the order of their start."""
        yield self
        for child in self.children:
            yield from child.everything()


@dataclass(frozen=True)
class Replay:
    """One repeated call.

    Args:
        stages: values that show its randomness. First its return value, then its arguments, to
            which it may have written, then module and arguments of each call that it made.
        drawn: generators that were used: "torch", "numpy", "python".
    """

    stages: list[Any]
    drawn: tuple[str, ...]

    def same(self, other: Replay) -> bool:
        """Return True if two repetitions have equal values at all stages."""
        return are_equal(list_leaves(self.stages), list_leaves(other.stages))


def name_modules(module: Any) -> Key:
    """Return a function that identifies a module: by id, or by class if it is not registered."""
    registered = {id(part) for part in module.modules()}
    return lambda part: id(part) if id(part) in registered else type(part).__qualname__


def record_calls(
    module: Any, key: Key, check: Callable[[Any], None], args: Any, kwargs: dict[str, Any]
) -> Call:
    """Run a module once and record every call.

    Args:
        module: the module, in its present mode.
        key: function that identifies modules.
        check: function that raises an error for a module that must not be called.
        args: positional arguments of the module.
        kwargs: keyword arguments of the module.
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
        # The call is recorded only now, because a call that raised an error cannot be replayed.
        stack[-1].children.append(call)
        return outputs

    args, kwargs = copy_value((args, kwargs))
    with seeded_globals(np.random.default_rng(0)), torch.no_grad(), calls_go_to(called):
        module(*args, **kwargs)
    return stack[0].children[0]


def replay_call(call: Call, key: Key, seed: int) -> Replay:
    """Repeat one call on its inputs, while its children return their recorded outputs.

    If a parent needs more of a child than its outputs, the children run. Each child then has its
    own generator, with the same seed in every replay.

    Args:
        call: recorded call.
        key: function that identifies modules, as in the record.
        seed: seed of the global generators.
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
            # This is the call itself, or a call that a running child makes.
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
    """Group calls by the key of their module, in order."""
    groups: defaultdict[Any, list[Call]] = defaultdict(list)
    for call in calls:
        groups[call.key].append(call)
    return groups


def _return_recorded(child: Call, args: Any, kwargs: Any) -> Any:
    """Return the recorded outputs of a child, and write its recorded changes to its arguments."""
    leaves = list_leaves((args, kwargs))
    for place, now in child.written.items():
        if place < len(leaves) and isinstance(now, torch.Tensor):
            leaves[place].copy_(now)
    return copy_value(child.outputs)


@contextmanager
def calls_go_to(called: Callable[..., Any]) -> Iterator[None]:
    """Replace every module call in this thread by a function, which can make the original call.

    Args:
        called: function `(call, module, args, kwargs, depth)`. `depth` is the number of calls that
            enclose this one.
    """
    inner, here, depth = torch.nn.Module.__call__, threading.get_ident(), 0

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal depth
        # The learnt part of a noise layer counts as code of the layer.
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
    """Restore buffers at the end, and at every call of the function that this yields.

    Running averages and power iterations change buffers in train mode, which is not randomness.
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
    """Set eval mode within a block, and then restore the mode of every part."""
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
