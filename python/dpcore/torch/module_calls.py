"""Records of all module calls in one run of a module, and repetitions of each recorded call.

During a run, dpcore replaces `torch.nn.Module.__call__`, as torch's own tracer does. Therefore
dpcore also records hooks, subclasses and modules that are not registered, and does not change the
user's objects.
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
    """Return a copy that later operations cannot change, or the value if it cannot be copied.

    Args:
        value: any value, such as a list or dictionary of tensors. Modules inside the value are not
            copied.
        memo: copies that exist already, by the id of the original.
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
    """List the tensors, arrays, numbers and texts inside a value, which may be nested."""
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
    """List the tensors inside a value, which may be nested."""
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
    """Return True if two values (or lists of values) are equal; NaN equals NaN."""
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
        module: the module that was called.
        key: value that identifies the module, see `name_modules`.
        args: copies of the positional arguments, made before the call.
        kwargs: copies of the keyword arguments, made before the call.
        children: records of the module calls that this call made.
        outputs: copy of the return value of the call.
        written: indices of the argument tensors that the call changed in place, with their values
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
        """Yield this call and all calls inside it, in the order in which they started."""
        yield self
        for child in self.children:
            yield from child.everything()


@dataclass(frozen=True)
class Replay:
    """Result of the repetition of one recorded call.

    Args:
        stages: values that differ between repetitions of a random call. The first is the return
            value. The second is the arguments after the call, which may have changed them. The
            others are the module and the arguments of each call that the repeated call made.
        drawn: random generators from which the call drew: "torch", "numpy", "python".
    """

    stages: list[Any]
    drawn: tuple[str, ...]

    def same(self, other: Replay) -> bool:
        """Return True if two repetitions have equal values at all stages."""
        return are_equal(list_leaves(self.stages), list_leaves(other.stages))


def name_modules(module: Any) -> Key:
    """Return a function that identifies modules: by id, or by class if they are not registered."""
    registered = {id(part) for part in module.modules()}
    return lambda part: id(part) if id(part) in registered else type(part).__qualname__


def record_calls(
    module: Any, key: Key, check: Callable[[Any], None], args: Any, kwargs: dict[str, Any]
) -> Call:
    """Run a module once and record every module call in the run.

    Args:
        module: the module; it runs in its present mode (train or eval).
        key: function that identifies modules, see `name_modules`.
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
    with seeded_globals(np.random.default_rng(0)), torch.no_grad(), redirect_module_calls(called):
        module(*args, **kwargs)
    return stack[0].children[0]


def replay_call(call: Call, key: Key, seed: int) -> Replay:
    """Repeat one recorded call; the module calls that it makes return their recorded outputs.

    A child is a module that the repeated call calls. If the repeated call needs more than the
    outputs of its children (such as an attribute that a child sets), the children run. Each child
    then has a separate random generator with the same seed in every repetition.

    Args:
        call: recorded call.
        key: function that identifies modules, as in the record.
        seed: seed of the global random generators.
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
        with redirect_module_calls(called):
            outputs = call.module(*args, **kwargs)
        after = _random_states()
    drawn = tuple(name for name in before if not are_equal(before[name], after[name]))
    return Replay([outputs, (args, kwargs), *handed], drawn)


def group_by_key(calls: Iterable[Call]) -> defaultdict[Any, list[Call]]:
    """Group calls by the key of their module; the calls of a group keep their order."""
    groups: defaultdict[Any, list[Call]] = defaultdict(list)
    for call in calls:
        groups[call.key].append(call)
    return groups


def _return_recorded(child: Call, args: Any, kwargs: Any) -> Any:
    """Return the recorded outputs of a call, and repeat its changes of argument tensors."""
    leaves = list_leaves((args, kwargs))
    for place, now in child.written.items():
        if place < len(leaves) and isinstance(now, torch.Tensor):
            leaves[place].copy_(now)
    return copy_value(child.outputs)


@contextmanager
def redirect_module_calls(called: Callable[..., Any]) -> Iterator[None]:
    """Within a block, replace every module call in this thread by a call of `called`.

    Args:
        called: function `(call, module, args, kwargs, depth)`. `call` is the original method, which
            `called` may use. `depth` is the number of module calls that enclose this call.
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
def keep_buffers(module: Any) -> Iterator[Callable[[], None]]:
    """Within a block, yield a function that restores a module's buffers; the end restores them too.

    In train mode, running averages and power iterations change buffers. Without the restored
    buffers, equal calls would differ although they are not random.
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
    """Within a block, set a module to eval mode; then restore the mode of each submodule."""
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
