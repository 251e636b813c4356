"""Tracing of noise through torch tensors.

A trace runs a mechanism and records how each number depends on the noise. The mechanism works with
ordinary tensors. For each storage (memory block) that contains noise, the trace keeps a shadow: an
array of traced numbers, one for each number of the storage. Views of a tensor share its storage,
and therefore also the shadow. An in-place operation changes the storage and the shadow. A function
mode of torch observes all calls of torch functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..packages import get_loaded_module

Draw = Callable[..., Any]
"""A function `(run, name of the law, location, scale, shape)` that draws and records noise."""

_SILENT: Final = frozenset((
    "__get__", "__set__", "__len__", "__hash__", "__delete__", "size", "dim", "ndimension",
    "numel", "nelement", "stride", "storage_offset", "is_contiguous", "is_floating_point",
    "is_complex", "element_size", "data_ptr", "untyped_storage", "requires_grad_",
    "register_hook", "retain_grad", "get_device", "is_same_size", "result_type", "can_cast",
    "zeros_like", "ones_like", "empty_like", "full_like", "new_zeros", "new_ones", "new_empty",
    "new_full", "is_tensor", "has_names", "_is_view", "is_inference", "is_set_to",
    "register_post_accumulate_grad_hook", "set_", "_has_compatible_shallow_copy_type",
))  # fmt: skip
"""Functions that do not read the numbers of a tensor."""

_MOVING: Final = frozenset((
    "view", "reshape", "view_as", "reshape_as", "expand", "expand_as", "transpose", "t",
    "permute", "squeeze", "unsqueeze", "flatten", "unflatten", "narrow", "select", "split",
    "chunk", "unbind", "__iter__", "detach", "detach_", "alias", "__getitem__", "diagonal",
    "movedim", "moveaxis", "swapaxes", "clone", "contiguous", "stack", "cat", "concat",
    "concatenate", "hstack", "vstack", "flip", "roll", "repeat", "tile", "index_select",
    "__deepcopy__", "cpu", "ravel", "broadcast_to", "adjoint", "as_strided", "unfold",
    "pin_memory",
))  # fmt: skip
"""Functions whose results contain entries of their arguments, at other positions."""

_CASTING: Final = frozenset(("to", "float", "double", "type", "type_as"))
"""Functions that return the same numbers in another type."""

_BASES: Final = {
    "multiply": "mul", "true_divide": "div", "divide": "div", "truediv": "div", "subtract": "sub",
    "negative": "neg", "mm": "matmul", "mv": "matmul", "dot": "matmul", "rsub": "rsub",
    "iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "div", "radd": "add", "rmul": "mul",
    "idiv": "div", "absolute": "abs", "less": "lt", "greater": "gt",
}  # fmt: skip
"""Alternative names of torch functions."""

_LAWS: Final = {"randn": "normal", "randn_like": "normal", "normal": "normal",
                "normal_": "normal", "exponential_": "exponential"}  # fmt: skip
_RANDOM: Final = frozenset((
    "rand", "rand_like", "randint", "randint_like", "randperm", "multinomial", "bernoulli",
    "bernoulli_", "uniform_", "random_", "cauchy_", "geometric_", "log_normal_", "poisson",
    "binomial", "gumbel_softmax", "rrelu", "rrelu_", "_standard_gamma", "_sample_dirichlet",
))  # fmt: skip
"""Torch functions whose random numbers are not traced as noise. They get the same random bits in
all runs with the same noise."""


def _add_scaled(left: Any, right: Any, alpha: float = 1.0, sign: int = 1) -> Any:
    right = right if alpha == 1 else right * alpha
    return left + right if sign == 1 else left - right


def _average_forms(left: Any, right: Any, weight: Any) -> Any:
    return left * (1 - weight) + right * weight


def _make_traced_array_reduction(name: str) -> Callable[..., Any]:
    def reduce_form(form: Any, dim: Any = None, keepdim: bool = False, **other: Any) -> Any:
        if not set(other) <= {"dtype"} or (name == "mean" and keepdim):
            return NotImplemented
        axis = tuple(dim) if isinstance(dim, list | tuple) else dim
        options = {"keepdims": True} if keepdim else {}
        return getattr(form, name)(axis=axis, **options)

    return reduce_form


def _make_argmax_function(name: str) -> Callable[[Any], np.ndarray[Any, Any]]:
    def find_index(form: Any) -> Any:
        return np.asarray(getattr(form, name)())

    return find_index


_FORMS: Final[dict[str, Callable[..., Any]]] = {
    "add": _add_scaled,
    "sub": lambda left, right, alpha=1.0: _add_scaled(left, right, alpha, -1),
    "rsub": lambda left, right: right - left,
    "mul": lambda left, right: left * right,
    "div": lambda left, right: left / right,
    "neg": lambda form: -form,
    "abs": abs,
    "sum": _make_traced_array_reduction("sum"),
    "mean": _make_traced_array_reduction("mean"),
    "matmul": lambda left, right: np.matmul(left, right),
    "rmatmul": lambda left, right: np.matmul(right, left),
    "lerp": _average_forms,
    "lt": lambda left, right: left < right,
    "le": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "ge": lambda left, right: left >= right,
    "argmax": _make_argmax_function("argmax"),
    "argmin": _make_argmax_function("argmin"),
    "clamp": lambda form, min=None, max=None: form.clip(min, max),
    "clip": lambda form, min=None, max=None: form.clip(min, max),
}
"""Functions on traced arrays, by the names of the corresponding torch functions."""

_SIMPLE_TYPES: Final = frozenset((int, float, bool, str, type(None)))
_DERIVED: Final = frozenset({"mul", "div", "matmul", "rmatmul", "abs", "lerp", "clamp", "clip"})
"""Functions whose derivative depends on the numbers of the tensors."""


@dataclass(slots=True)
class _FollowedStorage:
    """A torch storage, with its numbers as a tensor and as a numpy array, and its shadow.

    The shadow is an array of traced numbers: it states how each number depends on the noise.
    """

    storage: Any
    numbers: Any
    array: Any = None
    shadow: Any = None


class TensorFollower:
    """Record of how the torch tensors in one run of a mechanism depend on the noise.

    For each tensor that contains noise, this object stores an array of traced numbers. A traced
    number states how one entry of the tensor depends on the noise. When the mechanism calls a torch
    function, this object computes the traced numbers of the result.

    Args:
        run: object that records the noise and the random steps of this run of the mechanism.
        draw: function `(run, name, location, scale, shape)` that draws traced noise from the
            distribution with this name, such as "normal".
    """

    def __init__(self, run: Any, draw: Draw) -> None:
        self.run, self.draw = run, draw
        self.torch = get_loaded_module("torch")
        self.storages: dict[int, _FollowedStorage] = {}
        self.has_own_seed = False

    # Functions for storages.

    def is_tensor(self, value: Any) -> bool:
        """Return True if a value is a torch tensor."""
        return isinstance(value, self.torch.Tensor)

    def _is_functorch_wrapped(self, tensor: Any) -> bool:
        """Return True if a value is a tensor inside `torch.func.vmap` or `torch.func.grad`."""
        is_wrapped = self.torch._C._functorch.is_functorch_wrapped_tensor
        return self.is_tensor(tensor) and bool(is_wrapped(tensor))

    def _unwrap_functorch(self, tensor: Any) -> Any:
        while self._is_functorch_wrapped(tensor):
            tensor = self.torch._C._functorch.get_unwrapped(tensor)
        return tensor

    def get_noise_record(self, tensor: Any) -> _FollowedStorage | None:
        """Return the record of how a tensor depends on noise, or None for tensors without noise.

        The record contains the memory of the tensor and one traced number for each entry. A traced
        number states how the entry depends on the noise.
        """
        if not self.storages or not self.is_tensor(tensor):
            return None
        tensor = self._unwrap_functorch(tensor)
        if tensor.layout != self.torch.strided or tensor.device.type == "meta":
            return None
        return self.storages.get(tensor.untyped_storage().data_ptr())

    def _compute_entry_positions_in_storage(self, tensor: Any, storage_size: int) -> Any:
        """Return the positions of a tensor's entries in its storage of `storage_size` numbers.

        None means that the tensor consists of all numbers of the storage, in order.
        """
        if tensor.numel() == storage_size and tensor.is_contiguous():
            return None
        # numpy is used, because torch would make a tensor without storage inside `grad`.
        places = np.arange(storage_size)[tensor.storage_offset() :]
        strides = [places.itemsize * step for step in tensor.stride()]
        return np.lib.stride_tricks.as_strided(places, tuple(tensor.shape), strides)

    def get_form(self, tensor: Any) -> Any:
        """Return an array that states how each entry of a tensor depends on the noise.

        The array has the shape of the tensor. It contains traced numbers: each of them states how
        one entry depends on the noise. If the tensor does not depend on noise, return a numpy array
        of its values.
        """
        entry = self.get_noise_record(tensor)
        if entry is None:
            return _float_array(tensor)
        places = self._compute_entry_positions_in_storage(tensor, entry.shadow.size)
        flat = entry.shadow if places is None else entry.shadow[places]
        return flat if flat.shape == tuple(tensor.shape) else flat.reshape(tuple(tensor.shape))

    def set_traced_array(self, tensor: Any, form: Any) -> None:
        """Record how a tensor depends on the noise; the values of the tensor do not change.

        The argument `form` is an array of traced numbers. Each of these numbers states how one
        entry of the tensor depends on the noise.
        """
        entry = self.get_noise_record(tensor)
        if entry is None and not _is_traced_and_noisy(form):
            return
        flat = tensor.detach()
        count = flat.untyped_storage().nbytes() // flat.element_size()
        numbers = flat.as_strided((count,), (1,), 0)
        places = self._compute_entry_positions_in_storage(flat, count)
        if entry is None:
            entry = _FollowedStorage(flat.untyped_storage(), numbers)
            if flat.device.type == "cpu" and flat.dtype in (self.torch.float32, self.torch.float64):
                entry.array = numbers.numpy()
            self.storages[entry.storage.data_ptr()] = entry
        values = _float_array(numbers, keep_float32=True)
        if places is None and not _is_traced_and_noisy(form):
            del self.storages[entry.storage.data_ptr()]
            return
        if places is None:
            shadow = form.reshape(count) if form.shape != (count,) else form
        else:
            shadow = entry.shadow
            if shadow is None:
                shadow = form.ravel()[np.zeros(count, int)] * 0.0
                _, ids, weights = shadow.form
                shadow = _shadow_like(shadow, values, values.astype(float), ids[:0], weights[:0])
            shadow[places] = form
        entry.shadow = _shadow_like(shadow, values.copy(), *shadow.form)

    def record_read(self, tensor: Any, function_name: str) -> None:
        """Record that the mechanism used the values of a tensor in the function `function_name`.

        The mechanism runs on an input x, and then again on an input x'. In the run on x', this
        method replaces the values of the tensor by the values from the run on x.
        """
        entry = self.get_noise_record(tensor)
        if entry is None:
            return
        shadow = entry.shadow
        tensor = self._unwrap_functorch(tensor)
        places = self._compute_entry_positions_in_storage(tensor, shadow.size)
        part = shadow if places is None else shadow[places]
        value = part.read(function_name)
        if places is not None:
            shadow[places] = value
        values = value if places is None else shadow.value
        if entry.array is None:
            entry.numbers.copy_(self.torch.from_numpy(np.array(values)))
        else:
            # numpy bypasses the version counters of autograd and the levels of `grad` and `vmap`.
            entry.array[...] = values
        if not _is_traced_and_noisy(shadow):
            self.storages.pop(entry.storage.data_ptr(), None)

    # Calls of torch functions.

    def call_function(self, function: Any, name: str, args: Any, named: dict[str, Any]) -> Any:
        """Call a torch function, and record how the result depends on noise in the arguments."""
        items = _flatten_except_numbers_and_strings(args, named)
        if any(map(_is_traced_and_noisy, items)):
            args, named = (self._traced_arrays_to_tensors(part) for part in (args, named))
            items = list(_flatten_except_numbers_and_strings(args, named))
        if name in ("tensor", "as_tensor", "from_numpy", "asarray") and args:
            return self._call_constructor(function, name, args, named)
        tensors = [item for item in items if self.get_noise_record(item) is not None]
        if not tensors:
            return function(*args, **named)
        if any(map(self._is_functorch_wrapped, items)):
            for tensor in tensors:
                self.record_read(tensor, name)
            return function(*args, **named)
        if name.startswith("_foreach_") and isinstance(args[0], list | tuple):
            return self._call_on_each_list_element(name.removeprefix("_foreach_"), args, named)
        if name == "numpy":
            return self.get_form(args[0])
        if name == "__setitem__":
            return self._set_items(function, *args)
        is_inplace = name.endswith("_") and not name.endswith("__")
        base = name.strip("_")
        is_inplace = is_inplace or base in ("iadd", "isub", "imul", "itruediv", "idiv")
        base = _BASES.get(base, base)
        if is_inplace and base in ("zero", "fill", "copy", "set_data"):
            return self._call_overwriting_function(function, args, named)
        if (name in _MOVING or name in _CASTING) and name != "detach_":
            result = self._call_moving_function(function, name, args, named)
            if result is not NotImplemented:
                return result
        elif base in _FORMS and "out" not in named:
            result = self._compute(function, base, args, named, is_inplace)
            if result is not NotImplemented:
                return result
        for tensor in tensors:
            self.record_read(tensor, name)
        return function(*args, **named)

    def _traced_arrays_to_tensors(self, values: Any) -> Any:
        """Replace arrays of traced numbers (values with a record of their noise) by tensors.

        The arrays may be inside tuples, lists or dicts.
        """
        if isinstance(values, dict):
            return {key: self._traced_arrays_to_tensors(value) for key, value in values.items()}
        if type(values) in (tuple, list):
            return type(values)(self._traced_arrays_to_tensors(value) for value in values)
        return self.array_to_tensor(values, None, None) if _is_traced_and_noisy(values) else values

    def array_to_tensor(self, form: Any, dtype: Any, device: Any) -> Any:
        """Convert an array of traced numbers (values with a record of their noise) to a tensor.

        A traced number is a value together with a record of how the value depends on the noise. The
        tensor has the same values, and the record is kept for the tensor.
        """
        value = np.array(form.value if _is_traced_and_noisy(form) else form)
        tensor = self.torch.from_numpy(value.reshape(np.shape(value))).to(device, dtype)
        self.set_traced_array(tensor, form)
        return tensor

    def _call_constructor(self, function: Any, name: str, args: Any, named: dict[str, Any]) -> Any:
        source = args[0]
        options = {key: named.get(key) for key in ("dtype", "device")}
        if isinstance(source, list | tuple):
            # numpy joins a list of traced numbers.
            parts = [self.get_form(t) for t in source if self.get_noise_record(t) is not None]
            if len(parts) == len(source) and parts:
                default = self.torch.get_default_dtype()
                return self.array_to_tensor(np.stack(parts), options["dtype"] or default, None)
        if self.get_noise_record(source) is None:
            return function(*args, **named)
        form = self.get_form(source)
        return self.array_to_tensor(form, options["dtype"] or source.dtype, options["device"])

    def _call_on_each_list_element(self, name: str, args: Any, named: dict[str, Any]) -> Any:
        """Apply a function to lists of tensors, element by element; return the list of results."""
        function = getattr(self.torch.Tensor, name)
        results = []
        for place in range(len(args[0])):
            some = [arg[place] if isinstance(arg, list | tuple) else arg for arg in args]
            results.append(self.call_function(function, name, tuple(some), named))
        return None if name.endswith("_") else results

    def _set_items(self, function: Any, target: Any, key: Any, value: Any) -> None:
        for item in _flatten_except_numbers_and_strings(key):
            self.record_read(item, "index")
        form = self.get_form(value) if self.is_tensor(value) else value
        function(target, key, value)
        if _is_view_key(key):
            view = target[key]
            is_whole = _is_traced_and_noisy(form) and form.shape == tuple(view.shape)
            self.set_traced_array(view, form if is_whole else self._broadcast(form, view))
        else:
            self._set_scattered(target, key, form)

    def _broadcast(self, form: Any, target: Any) -> Any:
        shape = tuple(target.shape)
        return np.broadcast_to(form, shape) if _is_traced_and_noisy(form) else _float_array(target)

    def _set_scattered(self, target: Any, key: Any, form: Any) -> None:
        places = self.torch.arange(target.numel()).reshape(target.shape)[key].numpy()
        whole = self.get_form(target)
        if not _is_traced_and_noisy(whole):
            whole = form.ravel()[np.zeros(target.numel(), int)] * 0.0 + whole.ravel()
        flat = whole.ravel()
        flat[places] = form
        self.set_traced_array(target, flat.reshape(tuple(target.shape)))

    def _call_overwriting_function(self, function: Any, args: Any, named: dict[str, Any]) -> Any:
        source = args[1] if len(args) > 1 else named.get("src", 0.0)
        form = self.get_form(source) if self.is_tensor(source) else 0.0
        result = function(*args, **named)
        self.set_traced_array(args[0], self._broadcast(form, args[0]))
        return result

    def _call_moving_function(
        self, function: Any, name: str, args: Any, named: dict[str, Any]
    ) -> Any:
        """Call a function that moves entries of tensors, such as `reshape` or `cat`.

        The record of how an entry depends on the noise moves with the entry. Return NotImplemented
        if the function cannot be traced.
        """
        data = args[0] if isinstance(args[0], list | tuple) else [args[0]]
        for item in _flatten_except_numbers_and_strings(args[1:], named):
            if item is not args[0] and name not in ("view_as", "reshape_as", "expand_as"):
                self.record_read(item, "index")
        result = function(*args, **named)
        results = result if isinstance(result, tuple | list) else [result]
        if not all(self.is_tensor(part) for part in results):
            return result if isinstance(result, str) else NotImplemented
        if all(self.get_noise_record(part) is not None for part in results):
            # Views share a storage that is traced already.
            return result
        if not all(part.is_floating_point() for part in results):
            return NotImplemented
        if name in _CASTING or name in ("cpu", "__deepcopy__"):
            self.set_traced_array(result, self.get_form(args[0]))
            return result
        return self._move_traced_entries(function, args, named, data, result)

    def _move_traced_entries(
        self, function: Any, args: Any, named: dict[str, Any], data: Any, result: Any
    ) -> Any:
        forms = [self.get_form(tensor) for tensor in data]
        ends = np.cumsum([0, *(tensor.numel() for tensor in data)])
        places = [
            self.torch.arange(ends[place], ends[place + 1]).reshape(tensor.shape)
            for place, tensor in enumerate(data)
        ]
        first = places if isinstance(args[0], list | tuple) else places[0]
        moved = function(first, *args[1:], **named)
        flat = np.concatenate([form.ravel() for form in forms])
        pairs = zip(moved, result, strict=True) if isinstance(result, tuple) else [(moved, result)]
        for part, target in pairs:
            self.set_traced_array(target, flat[part.numpy()])
        return result

    def _compute(
        self, function: Any, base: str, args: Any, named: dict[str, Any], is_inplace: bool
    ) -> Any:
        """Call a torch function such as `add`, and compute how the result depends on the noise.

        Return NotImplemented if the function cannot be traced.
        """
        tensors = [t for t in _flatten_except_numbers_and_strings(args, named) if self.is_tensor(t)]
        if any(not t.is_floating_point() and self.get_noise_record(t) is not None for t in tensors):
            return NotImplemented
        has_gradient = self.torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
        if base in _DERIVED and has_gradient:
            return NotImplemented
        try:
            forms = [self.get_form(t) if self.is_tensor(t) else t for t in args]
            options = {k: self.get_form(t) if self.is_tensor(t) else t for k, t in named.items()}
            form = _FORMS[base](*forms, **options)
        except (TypeError, ValueError):
            return NotImplemented
        if form is NotImplemented:
            return NotImplemented
        result = function(*args, **named)
        target = args[0] if is_inplace else result
        if not _is_traced_and_noisy(form):
            # The result of a reading or a comparison is the result of the run on x.
            self._write_untraced_values(target, form)
            return result
        shape = tuple(target.shape)
        self.set_traced_array(target, form if form.shape == shape else form.reshape(shape))
        return result

    def _write_untraced_values(self, target: Any, outcome: Any) -> None:
        with self.torch.no_grad():
            values = self.torch.as_tensor(np.asarray(outcome)).to(target.device, target.dtype)
            target.detach().copy_(values.reshape(target.shape))
        self.set_traced_array(target, _float_array(target))

    # Draws of noise.

    def draw_noise(self, function: Any, name: str, args: Any, named: dict[str, Any]) -> Any:
        """Draw the noise that a torch function such as `randn` would draw, and record the noise.

        If the name of the function ends with "_", such as `normal_`, the noise is written into an
        existing tensor.
        """
        names = dict(named)
        generator = names.pop("generator", None)
        if self.has_constant_seed(generator):
            return function(*args, **named)
        loc, scale = _location_and_scale_of_draw(name, args, names)
        # The original function determines shape, type and device.
        target = args[0] if name.endswith("_") else function(*args, **names).detach()
        for value in (loc, scale):
            self.record_read(value, "parameter")
        loc, scale = (_float_array(v) if self.is_tensor(v) else v for v in (loc, scale))
        shape = tuple(target.shape)
        noise = self.draw(self.run, _LAWS[name], loc, scale, shape)
        self._fill_with_noise(target, noise)
        return target.requires_grad_() if names.get("requires_grad") else target

    def draw_named(self, law: str, loc: Any, scale: Any, shape: Any, dtype: Any) -> Any:
        """Draw and record noise from the distribution with the name `law`; return a new tensor."""
        loc, scale = (_float_array(v) if self.is_tensor(v) else v for v in (loc, scale))
        # The function mode must not observe these calls.
        with self.torch._C.DisableTorchFunction():
            target = self.torch.empty(tuple(shape), dtype=dtype)
            self._fill_with_noise(target, self.draw(self.run, law, loc, scale, tuple(shape)))
        return target

    def _fill_with_noise(self, target: Any, noise: Any) -> None:
        values = np.asarray(noise.value if _is_traced_and_noisy(noise) else noise, float)
        with self.torch.no_grad():
            target.copy_(self.torch.from_numpy(np.array(values)).reshape(target.shape))
        if _is_traced_and_noisy(noise):
            self.set_traced_array(target, noise)
        else:
            self.set_traced_array(target, values)

    def draw_untraceable(self, function: Any, name: str, args: Any, named: dict[str, Any]) -> Any:
        """Call a torch function whose random numbers dpcore cannot trace.

        All runs of the mechanism get the same random numbers from this function.
        """
        if self.has_constant_seed(named.get("generator")):
            return function(*args, **named)
        for tensor in _flatten_except_numbers_and_strings(args, named):
            self.record_read(tensor, name)

        def call(base: np.random.Generator) -> Any:
            with self.torch.random.fork_rng(devices=[]):
                self.torch.default_generator.manual_seed(int(base.integers(2**62)))
                return function(*args, **named)

        value = self.run.fix(name, call)
        if name == "random_" and value.numel() == 1:
            self.run.issued_seeds.add(int(value))
        return value

    def has_constant_seed(self, generator: Any) -> bool:
        """Return True if a fixed seed in the mechanism determines the draws of a torch generator.

        Such draws do not count as noise, because they are the same in each run.
        """
        if generator is None:
            return self.has_own_seed
        return generator.initial_seed() not in self.run.issued_seeds

    def call_seeding_function(self, function: Any, args: Any, named: dict[str, Any]) -> Any:
        """Call a function that seeds torch's global generator; record whether the seed is fixed.

        The seed counts as fixed if it was not drawn at random in the same run. Later draws from the
        global generator then do not count as noise.
        """
        value = int(next(iter((*args, *named.values())), 0))
        self.has_own_seed = self.has_own_seed or value not in self.run.issued_seeds
        return function(*args, **named)


def _location_and_scale_of_draw(name: str, args: Any, named: dict[str, Any]) -> tuple[Any, Any]:
    """Return the location and scale of a draw by a torch function with these arguments."""
    if name.startswith("randn"):
        return 0.0, 1.0
    rest = args[1:] if name.endswith("_") else args
    if name == "exponential_":
        return 0.0, 1.0 / (rest[0] if rest else named.get("lambd", 1.0))
    values = dict(zip(("mean", "std"), rest, strict=False), **named)
    return values.get("mean", 0.0), values.get("std", 1.0)


def _is_traced_and_noisy(value: Any) -> bool:
    """Return True if a value is a traced array that depends on at least one noise draw."""
    return type(value).__name__ == "NoisyValue" and value.form[1].shape[0] > 0


def _shadow_like(shadow: Any, values: Any, plain: Any, ids: Any, weights: Any) -> Any:
    return type(shadow)(shadow._run, values, plain, ids, weights, shadow.meeting)


def _float_array(tensor: Any, keep_float32: bool = False) -> Any:
    """Return the numbers of a tensor as a float64 array.

    If `keep_float32` is True, a float32 tensor becomes a float32 array.
    """
    plain = tensor.detach().cpu()
    if keep_float32 and str(plain.dtype) in ("torch.float32", "torch.float64"):
        return plain.numpy()
    return plain.double().numpy()


def _is_view_key(key: Any) -> bool:
    """Return True for an index that gives a view of a tensor, such as an int or a slice."""
    keys = key if isinstance(key, tuple) else (key,)
    return all(k is None or k is Ellipsis or isinstance(k, int | slice) for k in keys)


def _flatten_except_numbers_and_strings(*values: Any) -> list[Any]:
    """List the objects inside nested tuples, lists and dicts, without plain numbers and strings."""
    items: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is tuple or kind is list:
            items += _flatten_except_numbers_and_strings(*value)
        elif kind is dict:
            items += _flatten_except_numbers_and_strings(*value.values())
        elif kind not in _SIMPLE_TYPES:
            items.append(value)
    return items


def _make_mode(follower: TensorFollower) -> Any:
    from torch.overrides import TorchFunctionMode

    class FollowingMode(TorchFunctionMode):  # type: ignore[misc]
        """Function mode of torch that traces the noise in tensors."""

        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            named = kwargs or {}
            name = function.__name__
            if name in _LAWS and "out" not in named:
                return follower.draw_noise(function, name, args, named)
            if name in _RANDOM or "dropout" in name:
                return follower.draw_untraceable(function, name, args, named)
            if name in _SILENT or not (follower.storages or _has_traced_arrays(args)):
                return function(*args, **named)
            return follower.call_function(function, name, args, named)

    return FollowingMode()


def _has_traced_arrays(args: Any) -> bool:
    return any(_is_traced_and_noisy(item) for item in _flatten_except_numbers_and_strings(args))


@contextmanager
def _enter_follower(run: Any, draw: Draw) -> Iterator[None]:
    torch = get_loaded_module("torch")
    run.tensors = TensorFollower(run, draw)
    with torch.random.fork_rng(devices=[]), _make_mode(run.tensors):
        # Draws that the mode does not observe get different bits in each run.
        torch.default_generator.manual_seed(run.serial)
        yield


def follow_tensors(run: Any, draw: Draw) -> AbstractContextManager[None]:
    """Return a context manager that traces the noise which a mechanism draws with torch.

    To trace noise means to record how each number that the mechanism computes depends on the noise.

    The context manager has no effect if torch is not imported.
    """
    if get_loaded_module("torch") is None:
        return nullcontext()
    return _enter_follower(run, draw)


def _get_follower(run: Any) -> TensorFollower | None:
    return None if run is None else run.tensors


def list_torch_patches(get_active_run: Callable[[], Any]) -> list[Any]:
    """List torch functions that are replaced while the noise of a mechanism is traced.

    Each entry of the list contains a function and its replacement. torch reports most calls to a
    `TorchFunctionMode`. The list contains only the functions whose calls torch does not report.

    The list is empty if torch is not imported.
    """
    torch = get_loaded_module("torch")
    if torch is None:
        return []

    def replace_seeding(original: Any) -> Any:
        def manual_seed(*args: Any, **named: Any) -> Any:
            follower = _get_follower(get_active_run())
            return (
                follower.call_seeding_function(original, args, named)
                if follower
                else original(*args, **named)
            )

        return manual_seed

    def replace_conversion(original: Any) -> Any:
        def from_numpy(array: Any) -> Any:
            follower = _get_follower(get_active_run())
            if follower is None or not _is_traced_and_noisy(array):
                return original(array)
            with torch._C.DisableTorchFunction():
                return follower.array_to_tensor(array, None, None)

        return from_numpy

    def replace_sampler(law: str) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def rsample(self: Any, sample_shape: Any = ()) -> Any:
                follower = _get_follower(get_active_run())
                if follower is None or follower.has_own_seed:
                    return original(self, sample_shape)
                shape = self._extended_shape(torch.Size(sample_shape))
                dtype = self.loc.dtype if follower.is_tensor(self.loc) else None
                noise = follower.draw_named(law, 0.0, 1.0, shape, dtype)
                return self.loc + noise * self.scale

            return rsample

        return make

    return [
        (torch, "manual_seed", replace_seeding),
        (torch, "from_numpy", replace_conversion),
        (torch.distributions.Laplace, "rsample", replace_sampler("laplace")),
        (torch.distributions.Gumbel, "rsample", replace_sampler("gumbel")),
    ]
