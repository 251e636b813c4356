"""Search for the calls in which a torch module draws random numbers.

The torch module runs once. Every call of a module in this run is recorded, and is repeated with two
seeds. A recorded call can then be inspected as a mechanism: rows from the user replace the batch in
the input of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, overload

import numpy as np

from .. import structure
from ..errors import integer, invalid, mistyped
from ..mechanisms.callables import make_generator
from ..packages import has_all, torch
from ..report.shown import Shown
from ..streams import SAMPLE, Generators, Rng, seeded_globals, to_seed
from .layers import LearntScale, NoiseLayer
from .module_calls import (
    Call,
    Key,
    Replay,
    are_equal,
    copy_value_if_possible,
    eval_mode,
    group_by_key,
    keep_buffers,
    list_tensors,
    module_key_function,
    redirect_module_calls,
    replay_call,
    run_and_record_calls,
)

Varying = tuple[int, tuple[int, ...]]

NUMBERS: Final = 1024
"""Largest number of output entries that an inspection uses: more would not fit in memory."""
_MAX_BATCH_NUMBERS: Final = 2**22
"""Largest number of input entries that go through the module at a time."""

_MAX_TRIED_SEEDS: Final = 32
"""Seeds tried for a call that draws numbers but has equal outputs: its noise may be rare."""


def noised_input_index(call: Call, key: Key, kinds: dict[int, str], varying: Varying) -> int | None:
    """Return the index of the argument (a tensor) to which a recorded module call adds noise.

    The index counts all tensors in the arguments. If no such argument is found, the function
    returns the index of the first floating point tensor. If no tensor is of this type, the
    function returns the index of the first tensor, or None if the call has no tensor argument.
    """
    tensors = list_tensors((call.args, call.kwargs))
    places = [place for place, tensor in enumerate(tensors) if not tensor.is_nested]
    floating = [place for place in places if tensors[place].is_floating_point()]
    for place in floating if len(floating) > 1 else ():
        if RepeatedCall(call, key, kinds, varying, place, None).is_noise_added_to_main_input():
            return place
    return next(iter(floating or places), None)


class RepeatedCall(torch.nn.Module):
    """Torch module that repeats a recorded call of another module on a batch of new rows.

    The new rows replace the main input (the tensor argument to which the call adds noise). If
    another tensor argument has the length of the recorded batch, the first row of this argument is
    repeated for all new rows. All other arguments are equal to the recorded arguments.

    Module calls inside the recorded call (inner calls) also run. An inner call that is random only
    in train mode runs in eval mode. An inner call that is random in eval mode too does not run, but
    returns the first row of its recorded outputs.

    Args:
        call: the recorded call.
        key: function from a module to a key that identifies the module (see `module_key_function`).
        kinds: dict from the id of each random call to its type: "dropout", "train mode" (random
            only in train mode) or "noise" (random in eval mode too).
        varying: pair that states which tensors are random. The first entry is the index of a value
            in `Replay.stages` (0 is the return value of the call). The second entry has the indices
            of the random tensors in this value; an empty tuple means all tensors.
        place: index of the main input among all tensors in the arguments.
        axis: axis of the main input along which the rows lie. None means 1 if the module has
            `batch_first=False`, otherwise 0.
    """

    def __init__(
        self, call: Call, key: Key, kinds: dict[int, str], varying: Varying, place: int | None,
        axis: int | None,
    ) -> None:  # fmt: skip
        """Find the main input and its first row."""
        super().__init__()
        self.module, self.training = call.module, call.module.training
        # The modules are in a list, because torch would otherwise register them as parts of this
        # module.
        self._held: Any = [call, key, kinds]
        self._varying = varying
        if place is None:
            requirement = "a call with a tensor among its arguments; dpcore.audit takes the others"
            raise mistyped("source", requirement, type(call.module).__name__)
        main = list_tensors((call.args, call.kwargs))[place]
        if main.is_complex() or main.numel() == 0:
            requirement = "real numbers, at least one"
            raise invalid("input", requirement, (tuple(main.shape), main.dtype))
        self._main = [main]
        self._alone = main.ndim < 2
        is_late = has_all(call.module, "batch_first") and call.module.batch_first is False
        late = main.ndim > 2 and is_late
        self.axis = 1 if axis is None and late else integer("axis", axis or 0, 0)
        if self.axis >= max(1, main.ndim):
            raise invalid("axis", f"below {main.ndim}, the dimensions of the input", axis)
        x = main if self._alone else main.select(self.axis, 0)
        # numpy has no bfloat16, but float32 represents its values exactly.
        self.x = x.float() if x.dtype == torch.bfloat16 else x

    def __repr__(self) -> str:
        return repr(self.module)

    @property
    def partial(self) -> bool:
        """True if the method `clean` would change the size or dtype of the recorded input row."""
        return bool(self.x.numel() > NUMBERS or self.x.dtype != self._main[0].dtype)

    def clean(self, x: Any) -> Any:
        """Return at most the first 1,024 numbers of the row `x` to which the call adds noise."""
        return x.detach().to(self._main[0].dtype).reshape(-1)[:NUMBERS].double().cpu()

    @property
    def is_parameterless_leaf_call(self) -> bool:
        """True if the recorded call calls no other module and uses no float parameters."""
        held = [
            parameter for parameter in self.module.parameters() if parameter.is_floating_point()
        ]
        return not (self._held[0].children or held)

    def is_noise_added_to_main_input(self) -> bool:
        """Return True if the call adds noise to its main input (a tensor argument).

        The method adds a number to the input. Then the output must change by the same number.
        """
        if not self.x.is_floating_point():
            return False
        step = 1.0 + float(self.x.abs().max())
        try:
            with torch.no_grad():
                low, high = (self._call_with_fixed_seed(point) for point in (self.x, self.x + step))
        except Exception:
            return False
        is_moved = ((high - low).double() - step).abs() <= 0.05 * step
        return low.shape[1] == min(NUMBERS, self.x.numel()) and bool(is_moved.all())

    def _call_with_fixed_seed(self, point: Any) -> Any:
        with seeded_globals(np.random.default_rng(1)):
            return self(point.unsqueeze(0).repeat(2, *(1 for _ in point.shape)))

    def forward(self, batch: Any) -> Any:
        """Repeat the recorded call on a batch of rows.

        Return the random numbers in the outputs of the call, shape `(size, numbers)`.
        """
        at_once = max(2, _MAX_BATCH_NUMBERS // max(1, self.x.numel()))
        return torch.cat([self._repeat_call_on_row_chunk(part) for part in batch.split(at_once)])

    def _repeat_call_on_row_chunk(self, batch: Any) -> Any:
        call, size, main = self._held[0], len(batch), self._main[0]
        placed = batch.to(main.device, main.dtype)
        tensors = list_tensors((call.args, call.kwargs))
        memo = {id(tensor): self._repeat_first_row(tensor, size) for tensor in tensors}
        memo[id(main)] = placed if self._alone else placed.movedim(0, self.axis)
        args, kwargs = copy_value_if_possible((call.args, call.kwargs), memo)
        handed: list[Any] = []
        with redirect_module_calls(self._make_inner_call_input_recorder(size, handed)):
            outputs = call.module(*args, **kwargs)
        stages = [outputs, (args, kwargs), *handed]
        stage, places = self._varying
        outputs_of_stage = list_tensors(stages[stage] if stage < len(stages) else outputs)
        if places:
            chosen = [outputs_of_stage[place] for place in places if place < len(outputs_of_stage)]
        else:
            chosen = [tensor for tensor in outputs_of_stage if tensor.is_floating_point()]
        return self._flatten_by_row(chosen, size)

    def _repeat_first_row(self, tensor: Any, size: int) -> Any:
        """Repeat the first row of a tensor as long as the batch; copy any other tensor."""
        axis, fits = self.axis, not (self._alone or tensor.is_nested or tensor.ndim <= self.axis)
        if fits and tensor.shape[axis] == self._main[0].shape[axis]:
            return tensor.narrow(axis, 0, 1).repeat_interleave(size, axis)
        return tensor.clone()

    def _make_inner_call_input_recorder(self, size: int, handed: list[Any]) -> Any:
        """Return a function that handles inner calls of this call and records their inputs."""
        call, key, kinds = self._held
        waiting = group_by_key(list(call.everything())[1:])

        def called(inner: Any, part: Any, args: Any, kwargs: Any, depth: int) -> Any:
            if depth == 1:
                handed.append(copy_value_if_possible((key(part), args, kwargs)))
            child = waiting[key(part)].pop(0) if depth and waiting[key(part)] else None
            kind = kinds.get(id(child))
            if child is not None and kind == "noise":
                memo = {id(t): self._repeat_first_row(t, size) for t in list_tensors(child.outputs)}
                return copy_value_if_possible(child.outputs, memo)
            with eval_mode(part) if kind else nullcontext():
                return inner(part, *args, **kwargs)

        return called

    def _flatten_by_row(self, tensors: list[Any], size: int) -> Any:
        """Return the numbers of the given tensors as a matrix, with a row for each input row."""
        axis = 0 if self._alone else self.axis
        rows = [
            tensor.movedim(axis, 0).reshape(size, -1)
            for tensor in tensors
            if not tensor.is_nested and tensor.ndim > axis and tensor.shape[axis] == size
        ]
        if not rows:
            requirement = f"with {size} rows along axis {axis} (axis= names another one)"
            raise invalid("outputs", requirement, [tuple(tensor.shape) for tensor in tensors])
        return torch.cat(rows, dim=1)[:, :NUMBERS]


@dataclass(frozen=True, eq=False)
class NoiseSource(Shown):
    """One call of a torch module that returns random outputs for a fixed input.

    Args:
        path: dotted path of the module in the model, such as "layer.dropout". The path is "" for
            the model itself, and None if the module is not registered in the model.
        call: position of this call among all calls of the same module, from 1.
        calls: number of all calls of the same module.
        module: the module that was called.
        args: positional arguments of the call.
        kwargs: keyword arguments of the call.
        input: tensor argument to which the call adds noise. If no such argument is found, `input`
            is the first floating point tensor, or the first tensor if no tensor is floating point.
            None if no argument is a tensor.
        kind: "dropout" for a dropout module of torch; "train mode" for a different module that is
            random only in train mode; or "noise" for a call that is random in eval mode too.
        draws: names of the global random generators from which the call drew: "torch", "numpy",
            "python". Empty if the randomness comes from a generator or a state inside the module.
    """

    path: str | None
    call: int
    calls: int
    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    input: Any
    kind: str
    draws: tuple[str, ...]
    _rows: Callable[[int | None], RepeatedCall] = field(repr=False)

    @property
    def name(self) -> str:
        """Path of the called module.

        If the module is called several times, the name also contains the number of this call.
        """
        place = self.path or ("(root)" if self.path == "" else f"({type(self.module).__name__})")
        return f"{place}, call {self.call} of {self.calls}" if self.calls > 1 else place

    def inspect(
        self, rng: Rng = None, *, axis: int | None = None, **options: Any
    ) -> structure.Inspection:
        """Search for faults in the noise which this module call adds to one row of its input.

        The call is repeated many times, on a batch of copies of the first row of the input. If
        another tensor argument has the length of the batch, the first row of this argument is
        repeated too. Module calls inside this call (inner calls) also run. An inner call that is
        random only in train mode runs in eval mode. An inner call that is random in eval mode too
        returns its recorded outputs. The search uses the first 1,024 random numbers in the return
        value of the call. If the return value is not random, the search uses the random numbers in
        the inputs of an inner call.

        The clean vector is the output without noise. If a shift of the input shifts the outputs by
        the same amount, the search uses the input as the clean vector. Otherwise the clean vector
        is unknown. The checks ``one_sided``, ``atom`` and ``off_centre`` then run only if the
        option `clean` gives the clean vector.

        Some checks also need inputs that differ from this row. If the input consists of integers,
        such as token numbers, these checks use only the inputs in the option `others`.

        Args:
            rng: seed of the search: an integer in [0, 2**63), a numpy Generator, or None for a
                random seed.
            axis: axis of the input along which its rows lie. Defaults to 1 if the module has
                ``batch_first=False``, otherwise 0. An input of one dimension is one row.
            **options: options of `dpcore.structure.inspect`: `draws`, `clean`, `others`, `skip` and
                `false_alarm`.

        Returns:
            The `dpcore.structure.Inspection`, which lists each check with its result.

        Raises:
            TypeError: if the call has no tensor among its arguments.
            ValueError: if an option is out of range, if the outputs do not have one row for each
                input row, or if a batch norm mixes the rows.
        """
        rows = self._rows(axis)
        seed = to_seed(rng)
        if not rows.x.is_floating_point():
            options.setdefault("others", ())
        if options.get("clean") is None:
            if rows.is_noise_added_to_main_input():
                options["clean"] = rows.clean if rows.partial else None
            elif self.draws or rows.partial or not rows.is_parameterless_leaf_call:
                options["clean"] = False
        # Also seed numpy's and Python's generators: `inspect` seeds only torch's.
        with seeded_globals(make_generator(seed, SAMPLE, 2, 0)):
            return structure.inspect(rows, rows.x, rng=seed, **options)

    def __str__(self) -> str:
        """Describe the call and its randomness on one line."""
        of = " and ".join(self.draws) or "a generator or state of its own"
        kinds = {"dropout": "dropout in train mode", "train mode": "random in train mode only"}
        x, what = self.input, kinds.get(self.kind, self.kind)
        dtype = str(getattr(x, "dtype", "")).removeprefix("torch.")
        on = f"{tuple(x.shape)} {dtype}" if dtype else "no tensor"
        return f"{self.name}: {type(self.module).__name__}, {what} from {of}, on {on}"

    def __repr__(self) -> str:
        return f"<NoiseSource {self}>"


@dataclass(frozen=True, eq=False, repr=False)
class NoiseSources(Shown, Sequence[NoiseSource]):
    """All module calls with random outputs in one run of a torch module, in order.

    Args:
        sources: the module calls with random outputs.
        model: name of the class of the module that was run.
        mode: mode of this module, "train" or "eval".
        calls: number of all module calls in the run.
        uncalled: paths of modules that were not called in the run, and that have no submodules.
            Some modules (such as `TransformerEncoder` in eval mode) use the parameters of a
            submodule without calling the submodule. Noise in the submodule is then not drawn.
    """

    sources: tuple[NoiseSource, ...]
    model: str
    mode: str
    calls: int
    uncalled: tuple[str, ...]

    @overload
    def __getitem__(self, index: int) -> NoiseSource: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[NoiseSource, ...]: ...

    def __getitem__(self, index: int | slice) -> NoiseSource | tuple[NoiseSource, ...]:
        """Return the noise source with this index, from 0."""
        return self.sources[index]

    def __len__(self) -> int:
        """Return the number of noise sources."""
        return len(self.sources)

    def __str__(self) -> str:
        """Return a line with counts, and one line for each noise source."""
        count = {0: "no source", 1: "1 source"}.get(len(self), f"{len(self)} sources")
        calls = f"{self.calls} module call{'s' if self.calls > 1 else ''}"
        lines = [f"{count} of noise among {calls} ({self.model} in {self.mode} mode)"]
        lines += [f"  {source}" for source in self.sources]
        if self.uncalled:
            more = f" and {len(self.uncalled) - 3} more" if len(self.uncalled) > 3 else ""
            lines.append(f"  never called: {', '.join(self.uncalled[:3])}{more}")
        return "\n".join(lines)

    __repr__ = __str__


def noise_sources(module: Any, *inputs: Any, **kwargs: Any) -> NoiseSources:
    """Find the calls with random outputs inside a torch module, and record their inputs.

    The module runs once, in its present mode and without gradients. The function records every
    module call in this run, with copies of the inputs and outputs. Then the function repeats each
    call on the recorded inputs with two seeds. Module calls inside the repeated call (inner calls)
    return their recorded outputs. The repeated call is a noise source if its outputs, or the inputs
    of its inner calls, differ between the two seeds. Therefore the function also finds a noise
    source that runs after, or inside, another noise source. If a call draws random numbers but its
    outputs are equal for the two seeds, the call is repeated with up to 32 seeds.

    The function restores the states of random generators and the buffers of the module. The
    function does not restore other states, such as a counter. If such a state changes the outputs
    of a call, the call counts as a noise source with an empty field `draws`. If a module runs a
    submodule by ``child.forward(x)``, this call counts as a part of the outer module. On CUDA, a
    call may count as random only because the two repetitions round sums differently. Select
    deterministic algorithms in torch to avoid such differences.

    Args:
        module: the `torch.nn.Module` to search, in train or eval mode.
        *inputs: positional arguments with which the module is called.
        **kwargs: keyword arguments with which the module is called.

    Returns:
        A sequence of `NoiseSource` objects. Printing the sequence shows a table.

    Raises:
        TypeError: if `module` is not a module.
        ValueError: if the module or a submodule is compiled (``torch.compile``, ``torch.jit``), so
            that its calls cannot be observed; or if all input tensors are empty.

    Example:
        >>> import torch
        >>> class Noise(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x + torch.rand(x.shape)
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 3), Noise(), torch.nn.Tanh())
        >>> found = noise_sources(model, torch.zeros(8, 4))
        >>> print(found)
        1 source of noise among 4 module calls (Sequential in train mode)
          1: Noise, noise from torch, on (8, 3) float32
        >>> print(found[0].inspect(rng=1, draws=1000)["one_sided"])
        one_sided: FLAGGED: never below the clean vector in 1,000 draws: such noise hides nothing
    """
    if not isinstance(module, torch.nn.Module):
        raise mistyped("module", "a torch.nn.Module", module)
    # Check registered modules before the run, and unregistered modules when they are called.
    tensors = list_tensors((inputs, kwargs))
    if tensors and not any(tensor.numel() for tensor in tensors):
        # Outputs without a number cannot show randomness.
        raise invalid(
            "inputs", "tensors with at least one number", [tuple(x.shape) for x in tensors]
        )
    named, key = dict(module.named_modules()), module_key_function(module)
    for name, tensor in named.items():
        _require_uncompiled(name, tensor)
    paths = {id(tensor): name for name, tensor in named.items()}
    with Generators.collect_from_memory(), keep_buffers(module) as put_back:
        root = run_and_record_calls(module, key, partial(_require_uncompiled, ""), inputs, kwargs)
        calls = list(root.everything())
        runs = ((call, _find_two_replays_that_differ(call, key, put_back)) for call in calls)
        noisy_calls = [(call, both) for call, both in runs if both]
        kinds = {id(call): _randomness_cause(call, key, put_back) for call, _ in noisy_calls}
        each, sources = group_by_key(calls), []
        for call, both in noisy_calls:
            alike = each[call.key]
            at = paths.get(id(call.module)), alike.index(call) + 1, len(alike)
            varying = _first_varying_stage(*both)
            place = noised_input_index(call, key, kinds, varying)
            x = None if place is None else list_tensors((call.args, call.kwargs))[place]
            drawn = tuple(sorted({*both[0].drawn, *both[1].drawn}))
            rows = partial(RepeatedCall, call, key, kinds, varying, place)
            held = call.module, call.args, call.kwargs
            sources.append(NoiseSource(*at, *held, x, kinds[id(call)], drawn, rows))
    mode = "train" if module.training else "eval"
    leaves = [
        name
        for name, part in named.items()
        if isinstance(part, NoiseLayer)
        or not (isinstance(part, LearntScale) or any(True for _ in part.children()))
    ]
    uncalled = tuple(name for name in leaves if not each[key(named[name])])
    return NoiseSources(tuple(sources), type(module).__name__, mode, len(calls), uncalled)


def _require_uncompiled(name: str, module: Any) -> None:
    """Raise an error for a module whose calls cannot be observed."""
    if (
        isinstance(module, torch.jit.ScriptModule)
        or has_all(module, "_orig_mod")
        or vars(module).get("_compiled_call_impl") is not None
        or has_all(module.forward, "_torchdynamo_orig_callable")
    ):
        where = f"without the compiled part {name!r}" if name else "not compiled"
        advice = "in compiled code no call can be seen; hand over the original module"
        raise invalid("module", f"{where}: {advice}", type(module).__name__)


def _find_two_replays_that_differ(
    call: Call, key: Key, put_back: Callable[[], None]
) -> tuple[Replay, Replay] | None:
    """Find two repetitions of a call that differ; return None if all repetitions agree."""

    def run(seed: int) -> Replay:
        put_back()
        return replay_call(call, key, seed)

    first = run(1)
    for seed in range(2, _MAX_TRIED_SEEDS + 1):
        other = run(seed)
        if not first.same(other):
            return first, other
        if not (first.drawn or other.drawn):
            break
    return None


def _randomness_cause(call: Call, key: Key, put_back: Callable[[], None]) -> str:
    if isinstance(call.module, torch.nn.modules.dropout._DropoutNd):
        return "dropout"
    with eval_mode(call.module):
        quiet = _find_two_replays_that_differ(call, key, put_back) is None
    return "train mode" if quiet else "noise"


def _first_varying_stage(first: Replay, other: Replay) -> tuple[int, tuple[int, ...]]:
    """Find the first entry of `Replay.stages` with tensors that differ in two repetitions."""
    for stage, both in enumerate(zip(first.stages, other.stages, strict=False)):
        pairs = enumerate(zip(*map(list_tensors, both), strict=False))
        if places := tuple(place for place, pair in pairs if not are_equal(*pair)):
            return stage, places
    return 0, ()
