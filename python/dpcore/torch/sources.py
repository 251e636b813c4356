"""Sources of randomness in a module, and their inputs.

Every call in a run of the module is run again, with two seeds. A recorded call is also a mechanism
on rows, which take the place of its input, a batch.
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
from ..streams import SAMPLE, Generators, Rng, seed_of, seeded_globals
from .layers import LearntScale, NoiseLayer
from .module_calls import (
    Call,
    Key,
    Replay,
    are_equal,
    calls_go_to,
    copy_value,
    eval_mode,
    group_by_key,
    kept_buffers,
    list_tensors,
    name_modules,
    record_calls,
    replay_call,
)

Varying = tuple[int, tuple[int, ...]]

NUMBERS: Final = 1024
"""Numbers of an output that an inspection looks at: 1,536 draws of more would fill the memory."""
_MAX_BATCH_NUMBERS: Final = 2**22
"""Numbers of the input that go through the module at a time."""

_MAX_TRIED_SEEDS: Final = 32
"""Seeds tried with a call that draws numbers, while all outputs are equal: rare noise."""


def main_input(call: Call, key: Key, kinds: dict[int, str], varying: Varying) -> int | None:
    """Find the place of the tensor argument that the noise is for, or None if there is none.

    It is the one to which noise is added, else the first floating point one, else the first.
    """
    tensors = list_tensors((call.args, call.kwargs))
    places = [place for place, tensor in enumerate(tensors) if not tensor.is_nested]
    floating = [place for place in places if tensors[place].is_floating_point()]
    for place in floating if len(floating) > 1 else ():
        if Rows(call, key, kinds, varying, place, None).additive():
            return place
    return next(iter(floating or places), None)


class Rows(torch.nn.Module):
    """A module that takes a batch of rows and runs one recorded call on them.

    The main input is the batch. Every other tensor that is as long as the recorded batch gives its
    first row to all; all else is as recorded. The calls within it run; sources among them run in
    eval mode, if that takes their noise, or else return the first row of what they returned.

    Args:
        call: the call.
        key: tells modules apart, as in the record.
        kinds: of the sources, by the number of their calls.
        varying: at which stage of a replay its randomness shows, and the numbers of the tensors
            there; of all if empty.
        place: number of the main input among the tensors in the arguments.
        axis: of the batch, None for 1 where the module says `batch_first=False`, else 0.
    """

    def __init__(
        self, call: Call, key: Key, kinds: dict[int, str], varying: Varying, place: int | None,
        axis: int | None,
    ) -> None:  # fmt: skip
        """Find the main input and its first row."""
        super().__init__()
        self.module, self.training = call.module, call.module.training
        # In a list, or torch would take them for modules of this one.
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
        # numpy has no bfloat16; float32 holds its values exactly.
        self.x = x.float() if x.dtype == torch.bfloat16 else x

    def __repr__(self) -> str:
        return repr(self.module)

    @property
    def partial(self) -> bool:
        """True if the clean vector is not simply the input."""
        return bool(self.x.numel() > NUMBERS or self.x.dtype != self._main[0].dtype)

    def clean(self, x: Any) -> Any:
        """Return what the noise is added to: x as the module gets it, cut to the outputs in use."""
        return x.detach().to(self._main[0].dtype).reshape(-1)[:NUMBERS].double().cpu()

    @property
    def plain(self) -> bool:
        """True if the call uses no children and no floating point parameters."""
        held = [
            parameter for parameter in self.module.parameters() if parameter.is_floating_point()
        ]
        return not (self._held[0].children or held)

    def additive(self) -> bool:
        """Return True if the noise is added to the input: outputs then move as far as the input."""
        if not self.x.is_floating_point():
            return False
        step = 1.0 + float(self.x.abs().max())
        try:
            with torch.no_grad():
                low, high = (self._seeded(point) for point in (self.x, self.x + step))
        except Exception:
            return False
        is_moved = ((high - low).double() - step).abs() <= 0.05 * step
        return low.shape[1] == min(NUMBERS, self.x.numel()) and bool(is_moved.all())

    def _seeded(self, point: Any) -> Any:
        with seeded_globals(np.random.default_rng(1)):
            return self(point.unsqueeze(0).repeat(2, *(1 for _ in point.shape)))

    def forward(self, batch: Any) -> Any:
        """Compute outputs on a batch of rows, shape `(size, numbers)`."""
        at_once = max(2, _MAX_BATCH_NUMBERS // max(1, self.x.numel()))
        return torch.cat([self._some(part) for part in batch.split(at_once)])

    def _some(self, batch: Any) -> Any:
        call, size, main = self._held[0], len(batch), self._main[0]
        placed = batch.to(main.device, main.dtype)
        tensors = list_tensors((call.args, call.kwargs))
        memo = {id(tensor): self._repeated(tensor, size) for tensor in tensors}
        memo[id(main)] = placed if self._alone else placed.movedim(0, self.axis)
        args, kwargs = copy_value((call.args, call.kwargs), memo)
        handed: list[Any] = []
        with calls_go_to(self._called(size, handed)):
            outputs = call.module(*args, **kwargs)
        stages = [outputs, (args, kwargs), *handed]
        stage, places = self._varying
        outputs_of_stage = list_tensors(stages[stage] if stage < len(stages) else outputs)
        if places:
            chosen = [outputs_of_stage[place] for place in places if place < len(outputs_of_stage)]
        else:
            chosen = [tensor for tensor in outputs_of_stage if tensor.is_floating_point()]
        return self._numbers(chosen, size)

    def _repeated(self, tensor: Any, size: int) -> Any:
        """Repeat the first row of a tensor as long as the recorded batch; copy any other tensor."""
        axis, fits = self.axis, not (self._alone or tensor.is_nested or tensor.ndim <= self.axis)
        if fits and tensor.shape[axis] == self._main[0].shape[axis]:
            return tensor.narrow(axis, 0, 1).repeat_interleave(size, axis)
        return tensor.clone()

    def _called(self, size: int, handed: list[Any]) -> Any:
        """Handle calls within this one; those that it makes itself are recorded."""
        call, key, kinds = self._held
        waiting = group_by_key(list(call.everything())[1:])

        def called(inner: Any, part: Any, args: Any, kwargs: Any, depth: int) -> Any:
            if depth == 1:
                handed.append(copy_value((key(part), args, kwargs)))
            child = waiting[key(part)].pop(0) if depth and waiting[key(part)] else None
            kind = kinds.get(id(child))
            if child is not None and kind == "noise":
                memo = {id(t): self._repeated(t, size) for t in list_tensors(child.outputs)}
                return copy_value(child.outputs, memo)
            with eval_mode(part) if kind else nullcontext():
                return inner(part, *args, **kwargs)

        return called

    def _numbers(self, tensors: list[Any], size: int) -> Any:
        """Return the numbers that vary, one line for each of the `size` rows."""
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
    """One call of a module whose outputs are random although its input is fixed.

    Args:
        path: dotted path of the module, "" for the model itself, or None for a module that is no
            registered part of the model.
        call: which call of this module it is, from 1.
        calls: how often the module was called.
        module: the module.
        args: the positional arguments of the call, as they were.
        kwargs: the keyword arguments, too.
        input: the tensor among them that the noise is added to, or else the first floating point
            one, or else the first, or None if there is none.
        kind: "dropout" (torch's own), "train mode" (gone in eval mode, as dropout is), or "noise".
        draws: generators that moved: "torch", "numpy", "python"; empty for a generator, or
            another state, of the module's own.
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
    _rows: Callable[[int | None], Rows] = field(repr=False)

    @property
    def name(self) -> str:
        """The path, with the number of the call where there are several."""
        place = self.path or ("(root)" if self.path == "" else f"({type(self.module).__name__})")
        return f"{place}, call {self.call} of {self.calls}" if self.calls > 1 else place

    def inspect(
        self, rng: Rng = None, *, axis: int | None = None, **options: Any
    ) -> structure.Inspection:
        """Look for faults in the structure of this call, on the first row of its input.

        The row is repeated along the batch. Other tensors that are as long as the batch give their
        first row, too. Calls within this one run, but those that are sources themselves in eval
        mode or, if that does not quieten them, as they ran in the record. Looked at are the first
        1,024 numbers that vary, of what is returned or else of what is handed to a child.

        The vector behind the noise is the input, where outputs move with it as far as it does.
        Otherwise it is not known, and checks that need it (``one_sided``, ``atom``, ``off_centre``)
        are made only if `clean` gives it. Integers, such as tokens, are compared with no other
        inputs unless `others` gives some.

        Args:
            rng: None, an int in [0, 2**63) or a numpy Generator.
            axis: of the batch. None takes 1 where the module says ``batch_first=False``, else 0.
                An input of one dimension is one row.
            **options: those of `dpcore.structure.inspect`: draws, clean, others, skip,
                false_alarm.

        Returns:
            The `dpcore.structure.Inspection`.

        Raises:
            TypeError: if the call has no tensor among its arguments.
            ValueError: if an option is out of range, or the outputs have no row for each of the
                input, or a batch norm mixes the rows.
        """
        rows = self._rows(axis)
        seed = seed_of(rng)
        if not rows.x.is_floating_point():
            options.setdefault("others", ())
        if options.get("clean") is None:
            if rows.additive():
                options["clean"] = rows.clean if rows.partial else None
            elif self.draws or rows.partial or not rows.plain:
                options["clean"] = False
        # Also numpy's and Python's generators: the layers of an audit are given torch's alone.
        with seeded_globals(make_generator(seed, SAMPLE, 2, 0)):
            return structure.inspect(rows, rows.x, rng=seed, **options)

    def __str__(self) -> str:
        """Describe the source on one line."""
        of = " and ".join(self.draws) or "a generator or state of its own"
        kinds = {"dropout": "dropout in train mode", "train mode": "random in train mode only"}
        what = kinds.get(self.kind, self.kind)
        x = self.input
        on = "no tensor" if x is None else f"{tuple(x.shape)} {str(x.dtype).removeprefix('torch.')}"
        return f"{self.name}: {type(self.module).__name__}, {what} from {of}, on {on}"

    def __repr__(self) -> str:
        return f"<NoiseSource {self}>"


@dataclass(frozen=True, eq=False, repr=False)
class NoiseSources(Shown, Sequence[NoiseSource]):
    """The sources of noise in one run of a module, in the order of the calls: a sequence.

    Args:
        sources: the sources.
        model: what was run: the name of its class.
        mode: "train" or "eval".
        calls: module calls in the run.
        uncalled: paths of modules without children that were never called: fused kernels, as those
            of `TransformerEncoder` in eval mode, read parameters and skip modules and their noise.
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
        """Return the source of that number, from 0."""
        return self.sources[index]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.sources)

    def __str__(self) -> str:
        """Return a line of counts and one line for each source."""
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
    """Find where randomness enters a module: in which of the calls in it, and on what input.

    The module runs once, as it is, without gradients, and every call of a module within it is
    written down with copies of its inputs and outputs. Then each call runs again on its own input
    with two seeds, while the calls that it makes return what they returned. A call whose outputs
    then differ, or what it hands on to its children, is a source: one behind another, or inside
    it, is found all the same. Calls that draw numbers without effect are tried with 32 seeds.

    Generators and buffers are left as they were. What a module keeps elsewhere, such as a counter,
    is not put back, and tells it from a deterministic one: then `draws` is empty. Code that calls
    ``child.forward(x)`` is part of the parent. Kernels of a device that add up in any order (CUDA)
    count as random: ask torch for deterministic ones.

    Args:
        module: a `torch.nn.Module`, in train or eval mode.
        *inputs: what it is called with.
        **kwargs: by keyword.

    Returns:
        The `NoiseSources`: a sequence of `NoiseSource`; ``str`` is a table.

    Raises:
        TypeError: if `module` is not a module.
        ValueError: if it, or a part of it, is compiled (``torch.compile``, ``torch.jit``): its
            calls cannot be seen; or if all input tensors are empty.

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
    # All of them before a long run, and those that no module has registered when they are called.
    tensors = list_tensors((inputs, kwargs))
    if tensors and not any(tensor.numel() for tensor in tensors):
        # Nothing random can be seen in outputs without a number.
        raise invalid(
            "inputs", "tensors with at least one number", [tuple(x.shape) for x in tensors]
        )
    named, key = dict(module.named_modules()), name_modules(module)
    for name, tensor in named.items():
        _require_uncompiled(name, tensor)
    paths = {id(tensor): name for name, tensor in named.items()}
    with Generators.everywhere(), kept_buffers(module) as put_back:
        root = record_calls(module, key, partial(_require_uncompiled, ""), inputs, kwargs)
        calls = list(root.everything())
        runs = ((call, _find_differing_runs(call, key, put_back)) for call in calls)
        noisy_calls = [(call, both) for call, both in runs if both]
        kinds = {id(call): _classify_source(call, key, put_back) for call, _ in noisy_calls}
        each, sources = group_by_key(calls), []
        for call, both in noisy_calls:
            alike = each[call.key]
            at = paths.get(id(call.module)), alike.index(call) + 1, len(alike)
            varying = _find_varying_tensors(*both)
            place = main_input(call, key, kinds, varying)
            x = None if place is None else list_tensors((call.args, call.kwargs))[place]
            drawn = tuple(sorted({*both[0].drawn, *both[1].drawn}))
            rows = partial(Rows, call, key, kinds, varying, place)
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
    """Refuse a module whose calls cannot be seen."""
    if (
        isinstance(module, torch.jit.ScriptModule)
        or has_all(module, "_orig_mod")
        or vars(module).get("_compiled_call_impl") is not None
        or has_all(module.forward, "_torchdynamo_orig_callable")
    ):
        where = f"without the compiled part {name!r}" if name else "not compiled"
        advice = "in compiled code no call can be seen; hand over the original module"
        raise invalid("module", f"{where}: {advice}", type(module).__name__)


def _find_differing_runs(
    call: Call, key: Key, put_back: Callable[[], None]
) -> tuple[Replay, Replay] | None:
    """Find two runs of a call that differ, or return None."""

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


def _classify_source(call: Call, key: Key, put_back: Callable[[], None]) -> str:
    if isinstance(call.module, torch.nn.modules.dropout._DropoutNd):
        return "dropout"
    with eval_mode(call.module):
        quiet = _find_differing_runs(call, key, put_back) is None
    return "train mode" if quiet else "noise"


def _find_varying_tensors(first: Replay, other: Replay) -> tuple[int, tuple[int, ...]]:
    """Find the first stage with tensors that differ, and their numbers in it."""
    for stage, both in enumerate(zip(first.stages, other.stages, strict=False)):
        pairs = enumerate(zip(*map(list_tensors, both), strict=False))
        if places := tuple(place for place, pair in pairs if not are_equal(*pair)):
            return stage, places
    return 0, ()
