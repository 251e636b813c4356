"""Copies of what modules are called with, in any containers, and whether two are equal."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from ..needed import torch

__all__ = ["cloned", "leaves", "same", "tensors"]

_ATOMIC_TYPES: Final = (bool, int, float, complex, str, bytes, type(None))
_CODE_TYPES: Final = (torch.nn.Module, type, FunctionType, BuiltinFunctionType, ModuleType)


def cloned(value: Any, memo: dict[int, Any] | None = None) -> Any:
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
        found: Any = value.detach().clone()
    elif kind in (list, tuple):
        found = kind(cloned(one, memo) for one in value)
    elif kind is dict:
        found = {key: cloned(one, memo) for key, one in value.items()}
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        found = kind(*(cloned(one, memo) for one in value))
    else:
        try:
            found = copy.deepcopy(value, memo)
        except Exception:
            # A generator, a lock, an open file: it is handed on as it was.
            found = value
    memo[id(value)] = found
    return found


def leaves(value: Any) -> list[Any]:
    """List the tensors, arrays, numbers and texts in any containers and objects, in their order."""
    found: list[Any] = []
    held: dict[int, Any] = {}

    def walk(one: Any) -> None:
        if isinstance(one, (*_ATOMIC_TYPES, torch.Tensor, np.ndarray, np.generic)):
            found.append(one)
        elif id(one) not in held and not isinstance(one, _CODE_TYPES):
            # Held, so that no other object gets its number meanwhile.
            held[id(one)] = one
            found.append(type(one).__name__)
            if isinstance(one, Mapping):
                found.extend(str(key) for key in one)
            for part in _parts(one):
                walk(part)

    walk(value)
    return found


def tensors(value: Any) -> list[Any]:
    """List the tensors among the leaves."""
    return [one for one in leaves(value) if isinstance(one, torch.Tensor)]


def _parts(one: Any) -> list[Any]:
    if isinstance(one, Mapping):
        return list(one.values())
    if isinstance(one, (list, tuple, set, frozenset, deque)):
        return list(one)
    slots = [name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ())]
    named = {name: getattr(one, name) for name in slots if hasattr(one, name)}
    return list({**named, **getattr(one, "__dict__", {})}.values())


def same(left: Any, right: Any) -> bool:
    """Return True if two leaves, or lists of them, are equal; NaN equals NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(same(*pair) for pair in pairs)
    if isinstance(left, torch.Tensor) and left.is_nested:
        # A nested tensor has neither a shape nor a comparison of its own.
        return bool(right.is_nested) and same(list(left.unbind()), list(right.unbind()))
    if isinstance(left, torch.Tensor):
        if (left.shape, left.dtype, left.device) != (right.shape, right.dtype, right.device):
            return False
        if left.layout is not torch.strided:
            left, right = left.to_dense(), right.to_dense()
        return bool(((left == right) | ((left != left) & (right != right))).all())
    if isinstance(left, (np.ndarray, np.generic)):
        left, right = np.asarray(left), np.asarray(right)
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        # NaN is told by itself: it exists in arrays of objects, too.
        return bool(((left == right) | ((left != left) & (right != right))).all())
    return bool(left == right or (left != left and right != right))
