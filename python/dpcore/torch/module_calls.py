"""Records of all calls of torch modules in one run, and repetitions of each recorded call.

During a run, dpcore replaces `torch.nn.Module.__call__`, as torch's own tracer does. Therefore
dpcore also records calls of subclasses, calls with hooks, and calls of modules that are not
registered in another module. The user's objects are not changed.
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
"""Seed for an inner call that runs and does not return its recorded output."""
Key = Callable[[Any], Any]


def copy_value_if_possible(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """Return an independent copy of a value, or the value itself if it cannot be copied.

    Args:
        value: any value, such as a list or dictionary of tensors. Torch modules inside the value
            are not copied.
        memo: dict from the id of an object to an existing copy of the object. The function uses
            these copies, and adds new copies to the dict.
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
        copied = kind(copy_value_if_possible(part, memo) for part in value)
    elif kind is dict:
        copied = {key: copy_value_if_possible(part, memo) for key, part in value.items()}
    elif isinstance(value, tuple) and has_all(value, "_fields"):
        copied = kind(*(copy_value_if_possible(part, memo) for part in value))
    else:
        try:
            copied = copy.deepcopy(value, memo)
        except Exception:
            # Generators, locks and open files have no copy: return the value itself.
            copied = value
    memo[id(value)] = copied
    return copied


def atomic_values(value: Any) -> list[Any]:
    """Return a list of all tensors, arrays, numbers and texts inside a value, which may be nested.

    For each container inside the value, such as a dict, the list also has the name of its class.
    """
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
            for part in _list_item_or_attribute_values(item):
                walk(part)

    walk(value)
    return leaves


def list_tensors(value: Any) -> list[Any]:
    """Return a list of all tensors in a value, including tensors in nested lists and dicts."""
    return [leaf for leaf in atomic_values(value) if isinstance(leaf, torch.Tensor)]


def _list_item_or_attribute_values(whole: Any) -> list[Any]:
    if isinstance(whole, Mapping):
        return list(whole.values())
    if isinstance(whole, (list, tuple, set, frozenset, deque)):
        return list(whole)
    slots = [name for cls in type(whole).__mro__ for name in vars(cls).get("__slots__", ())]
    named = {name: getattr(whole, name) for name in slots if hasattr(whole, name)}
    return list((named | vars(whole) if has_all(whole, "__dict__") else named).values())


def are_equal(left: Any, right: Any) -> bool:
    """Return True if two values, or two lists of values, are equal.

    NaN counts as equal to NaN. Tensors and arrays are equal only if shape, dtype and device are
    equal too.
    """
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
    """Record of one call of a torch module.

    Args:
        module: the module that was called.
        key: value that identifies the module (see `module_key_function`).
        args: copies of the positional arguments, made before the call.
        kwargs: copies of the keyword arguments, made before the call.
        children: records of the calls of other modules inside this call.
        outputs: copy of the return value of the call.
        written: dict with those tensors and other objects in the arguments which the call changed
            in place. A key is the position of such an object among all objects inside the
            arguments. The value is a copy of the object after the call.
    """

    module: Any
    key: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    children: list[Call] = field(default_factory=list)
    outputs: Any = None
    written: dict[int, Any] = field(default_factory=dict)

    def everything(self) -> Iterator[Call]:
        """Yield this call and all module calls inside it, in the order in which they started."""
        yield self
        for child in self.children:
            yield from child.everything()


@dataclass(frozen=True)
class Replay:
    """Result of repeating one recorded call of a torch module.

    Args:
        stages: list of values. They are compared with the values of another repetition, to see if
            the call is random. The first value is the return value of the call. The second value is
            the arguments after the call, which the call may have changed. Each further value is the
            module and the arguments of a module call inside the repeated call.
        drawn: names of the random generators from which the call drew: "torch", "numpy" or
            "python".
    """

    stages: list[Any]
    drawn: tuple[str, ...]

    def same(self, other: Replay) -> bool:
        """Return True if this repetition and another repetition have equal values in `stages`."""
        return are_equal(atomic_values(self.stages), atomic_values(other.stages))


def module_key_function(module: Any) -> Callable[[Any], Any]:
    """Return a function from a torch module to a key that identifies the module.

    For a submodule that is registered in `module`, the key is the id of the submodule. For any
    other module, the key is the name of the module's class.
    """
    registered = {id(part) for part in module.modules()}
    return lambda part: id(part) if id(part) in registered else type(part).__qualname__


def run_and_record_calls(
    module: Any, key: Key, check: Callable[[Any], None], args: Any, kwargs: dict[str, Any]
) -> Call:
    """Run a torch module once, and record every call of a module during the run.

    Args:
        module: the module to run, in its present mode (train or eval).
        key: function from a module to a key that identifies the module (see `module_key_function`).
        check: function that is called with each module before the module is called. The function
            raises an error if the module must not be called.
        args: positional arguments of the module.
        kwargs: keyword arguments of the module.
    """
    stack = [Call(None, None, (), {})]

    def called(inner: Callable[..., Any], part: Any, args: Any, kwargs: Any, depth: int) -> Any:
        check(part)
        call = Call(part, key(part), *copy_value_if_possible((args, kwargs)))
        stack.append(call)
        try:
            outputs = inner(part, *args, **kwargs)
        finally:
            stack.pop()
        before, after = atomic_values((call.args, call.kwargs)), atomic_values((args, kwargs))
        if len(before) == len(after):
            places = [k for k, now in enumerate(after) if not are_equal(before[k], now)]
            call.written = {place: copy_value_if_possible(after[place]) for place in places}
        call.outputs = copy_value_if_possible(outputs)
        # The call is recorded only now, because a call that raised an error cannot be replayed.
        stack[-1].children.append(call)
        return outputs

    args, kwargs = copy_value_if_possible((args, kwargs))
    with seeded_globals(np.random.default_rng(0)), torch.no_grad(), redirect_module_calls(called):
        module(*args, **kwargs)
    return stack[0].children[0]


def replay_call(call: Call, key: Key, seed: int) -> Replay:
    """Repeat one recorded call of a torch module.

    Calls of other modules inside the repeated call (inner calls) do not run, but return their
    recorded outputs. Without the inner calls, the repetition may fail, for example because an inner
    call must set an attribute. If the repetition fails, it is started again, and the inner calls
    run, too. In every repetition, an inner call that runs uses the same seed.

    Args:
        call: the recorded call.
        key: function from a module to a key, the same function as in `run_and_record_calls`.
        seed: seed of the global random generators.
    """
    try:
        return _replay_call(call, key, seed, False)
    except Exception:
        return _replay_call(call, key, seed, True)


def _replay_call(call: Call, key: Key, seed: int, are_children_rerun: bool) -> Replay:
    handed: list[Any] = []
    waiting = group_by_key([] if are_children_rerun else call.children)

    def called(inner: Callable[..., Any], part: Any, args: Any, kwargs: Any, depth: int) -> Any:
        if depth != 1:
            # This is the call itself, or a call that a running child makes.
            return inner(part, *args, **kwargs)
        handed.append(copy_value_if_possible((key(part), args, kwargs)))
        if waiting[key(part)]:
            return _return_output_and_repeat_changes(waiting[key(part)].pop(0), args, kwargs)
        with seeded_globals(np.random.default_rng(_LIVE_CHILD_SEED + len(handed))):
            return inner(part, *args, **kwargs)

    args, kwargs = copy_value_if_possible((call.args, call.kwargs))
    with seeded_globals(np.random.default_rng(seed)), torch.no_grad():
        before = _random_states_by_package()
        with redirect_module_calls(called):
            outputs = call.module(*args, **kwargs)
        after = _random_states_by_package()
    drawn = tuple(name for name in before if not are_equal(before[name], after[name]))
    return Replay([outputs, (args, kwargs), *handed], drawn)


def group_by_key(calls: Iterable[Call]) -> defaultdict[Any, list[Call]]:
    """Return a dict from the key of each module to the list of the module's calls, in order."""
    groups: defaultdict[Any, list[Call]] = defaultdict(list)
    for call in calls:
        groups[call.key].append(call)
    return groups


def _return_output_and_repeat_changes(child: Call, args: Any, kwargs: Any) -> Any:
    """Return the recorded outputs of a call, and repeat its changes of argument tensors."""
    leaves = atomic_values((args, kwargs))
    for place, now in child.written.items():
        if place < len(leaves) and isinstance(now, torch.Tensor):
            leaves[place].copy_(now)
    return copy_value_if_possible(child.outputs)


@contextmanager
def redirect_module_calls(called: Callable[..., Any]) -> Iterator[None]:
    """While the `with` block runs, call a given function in place of every torch module.

    Only calls in this thread are replaced.

    Args:
        called: the function, with arguments `(call, module, args, kwargs, depth)`. The argument
            `call` is the original method `torch.nn.Module.__call__`, with which the function can
            run the module. `depth` is the number of module calls that enclose this call.
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
    """Context manager that restores the buffers of a torch module at the end of the `with` block.

    The context manager yields a function that also restores the buffers, whenever it is called.

    In train mode, a call may change buffers, such as running averages. A repeated call would then
    give a different result, although the module is not random.
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
    """While the `with` block runs, set a torch module to eval mode.

    Afterwards, restore the mode of the module and of each submodule.
    """
    parts = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in parts:
            part.training = mode


def _random_states_by_package() -> dict[str, list[Any]]:
    numpy = atomic_values(np.random.get_state(legacy=False))  # noqa: NPY002 - a module may draw from it
    torchs = [source.get_state() for source in torch_generators()]
    return {"torch": torchs, "numpy": numpy, "python": [random.getstate()]}
