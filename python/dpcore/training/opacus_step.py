"""One noisy step of Opacus: its own clipping and noise, without a step of the optimizer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid, mistyped, numeric, suggest_arguments
from ..events.device_outputs import numpy_of
from ..packages import has_all, require_module
from ..streams import seeded_globals
from .run import check_function

Vector = npt.NDArray[np.float64]

_require_module: Final = partial(require_module, who="OpacusStep", install="'dpcore[dpsgd]'")
"""Import of a module of Opacus, or of torch, when it is first needed."""

_OWN_FUNCTION_ADVICE: Final = "for others give audit_step a function (records, rng) -> vector"

_REFUSED_OPTIMIZERS: Final = ("AdaClip", "Distributed", "FSDP")
"""Parts of the names of optimizers whose clipping norm changes, or whose noise is drawn in another
process."""

_BATCH_SUM_TOLERANCE: Final = 1e-3
"""Relative difference of two sums of one batch that is put down to rounding."""


@suggest_arguments
class OpacusStep:
    """The noisy sum of clipped gradients that one step of Opacus makes, undivided.

    Per-sample gradients (for ghost clipping: their clipped sum) are computed once for a batch. Each
    draw clips and adds noise anew, with the methods of the optimizer itself, so that a subclass
    with a fault shows it. The optimizer makes no step, its accountant counts none, and weights,
    gradients, generators and modes are left as they were. Dropout is off; whatever else is random
    in the model is refused, for its noise is not the noise of the claim.

    Args:
        model: the module that `opacus.PrivacyEngine.make_private` returned, or an
            `opacus.GradSampleModule` (for ghost clipping its class for fast gradient clipping).
        optimizer: Opacus' optimizer of it: flat, per-layer or ghost clipping in one process.
        losses: a function of model and records that returns one loss a record, a tensor of shape
            `(n,)`.
        gradients: in place of `losses`, the gradients of n records, shape `(n, P)` with the P
            weights of the optimizer in its order. Records are then row numbers, `range(n)`. Large
            and opposed rows show what natural records do not. Not for ghost clipping, which has no
            gradient of a record.

    Raises:
        ModuleNotFoundError: if opacus is not installed.
        TypeError: if an argument is of the wrong kind; if Opacus does not wrap the model.
        ValueError: if the gradients have the wrong shape or are not finite.

    Source:
        Abadi et al. (2016), algorithm 1, the sum before it is divided; Yousefpour et al. (2021)
        (Opacus); Bu et al. (2022) (ghost clipping).
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        losses: Callable[[Any, Any], Any] | None = None,
        *,
        gradients: Any = None,
    ) -> None:
        _check_module(model)
        _check_optimizer(optimizer)
        self.model, self.optimizer, self.losses = model, optimizer, losses
        optimizers = _require_module("opacus.optimizers")
        self._ghost = isinstance(optimizer, optimizers.DPOptimizerFastGradientClipping)
        _check_kind(model, self._ghost)
        requirement = "a function (model, records) -> losses, or None where gradients are given"
        if losses is not None:
            check_function("losses", requirement, losses, 2)
        if (losses is None) == (gradients is None):
            raise mistyped("losses", requirement, losses)
        self._parameters = list(optimizer.params)
        self.sizes = tuple(int(one.numel()) for one in self._parameters)
        self._gradients = None if gradients is None else self._check_gradients(gradients)

    def __repr__(self) -> str:
        return f"OpacusStep({type(self.optimizer).__name__}, {sum(self.sizes):,} weights)"

    def __call__(self, records: Any, rng: np.random.Generator) -> Vector:
        """Draw one noisy sum.

        Args:
            records: the batch.
            rng: seeds all generators that the draw uses.

        Returns:
            The sum, shape `(P,)`.
        """
        return list(self.prepare(records)(1, rng))[0]  # noqa: RUF015

    def clean(self, records: Any) -> Vector | None:
        """Compute the sum of clipped gradients without noise.

        Args:
            records: the batch.

        Returns:
            The sum, shape `(P,)`; None where the clipping of the optimizer is random itself.
        """
        return self.prepare(records).clean

    def prepare(self, records: Any) -> PreparedBatch:
        """Compute the per-sample gradients of a batch once, for many draws.

        Args:
            records: the batch.

        Returns:
            The batch: called with `size` and `rng` it yields noisy sums.

        Raises:
            TypeError: if the losses are not a tensor.
            ValueError: if the batch is empty; if the losses are not one finite number a record,
                or are others at a second call; if a gradient is not finite or missing.
        """
        size = _batch_size(records)
        with self._left_as_found():
            if self._gradients is not None:
                return PreparedBatch(self, self._take_rows(records))
            held, again = self._backward(records, size), self._backward(records, size)
        _refuse_changes(held, again)
        return PreparedBatch(self, held)

    def _take_rows(self, records: Any) -> list[Any]:
        torch = _require_module("torch")
        rows = torch.as_tensor(np.asarray(self._gradients)[np.asarray(list(records), int)])
        parts = torch.split(rows, list(self.sizes), dim=1)
        return [
            part.to(one.device, one.dtype).reshape(len(rows), *one.shape)
            for part, one in zip(parts, self._parameters, strict=True)
        ]

    def _backward(self, records: Any, size: int) -> list[Any]:
        """Compute per-sample gradients, or for ghost clipping their clipped sum."""
        for one in self._parameters:
            one.grad = one.grad_sample = one.summed_grad = None
        losses = self._losses(records, size)
        if self._ghost:
            fast = _require_module("opacus.utils.fast_gradient_clipping_utils")
            reduction = self.model.loss_reduction
            package = fast.DPTensorFastGradientClipping
            package(self.model, self.optimizer, losses, reduction).backward()
            held = [one.grad for one in self._parameters]
        else:
            is_sum = has_all(self.model, "loss_reduction") and self.model.loss_reduction != "mean"
            (losses.sum() if is_sum else losses.mean()).backward()
            held = [one.grad_sample for one in self._parameters]
        for number, found in enumerate(held):
            if found is None:
                requirement = "losses that reach every weight of the optimizer"
                raise invalid("losses", requirement, f"no gradient of tensor {number}")
            if not bool(_require_module("torch").isfinite(found).all()):
                raise invalid("records", "a batch with finite gradients", "a NaN or infinity")
        return [found.detach() for found in held]

    def _losses(self, records: Any, size: int) -> Any:
        torch = _require_module("torch")
        assert self.losses is not None
        losses = self.losses(self.model, records)
        if not isinstance(losses, torch.Tensor):
            raise mistyped("losses(model, records)", "a tensor, one loss a record", losses)
        if tuple(losses.shape) != (size,):
            requirement = f"one loss a record, shape ({size},)"
            raise invalid("losses(model, records)", requirement, tuple(losses.shape))
        if not bool(torch.isfinite(losses).all()):
            raise invalid("losses(model, records)", "finite", losses.detach().tolist())
        return losses

    def _check_gradients(self, gradients: Any) -> npt.NDArray[Any]:
        if self._ghost:
            raise invalid("gradients", "None for ghost clipping", "an array")
        rows = numeric("gradients", "an array of numbers", gradients)
        total = sum(self.sizes)
        if rows.ndim != 2 or rows.shape[1] != total:
            raise invalid("gradients", f"an array of shape (n, {total})", rows.shape)
        if not np.isfinite(rows).all():
            raise invalid("gradients", "finite", "a NaN or infinity")
        return rows

    @contextmanager
    def _left_as_found(self) -> Iterator[None]:
        """Put back gradients, attributes of weights and optimizer, buffers and modes."""
        parameters = [(one, one.grad, dict(vars(one))) for one in self.model.parameters()]
        optimizer = dict(vars(self.optimizer))
        modules = [(one, one.training) for one in self.model.modules()]
        buffers = [(one, one.detach().clone()) for one in self.model.buffers()]
        torch = _require_module("torch")
        dropout = torch.nn.modules.dropout._DropoutNd
        try:
            for one, _ in modules:
                one.training = not isinstance(one, dropout)
            # Not from the seed of any draw: the same for every batch.
            with seeded_globals(np.random.default_rng(0)), warnings.catch_warnings():
                # Inputs need no gradient here, and Opacus' hooks need none of them.
                warnings.filterwarnings("ignore", "Full backward hook is firing")
                yield
        finally:
            for one, grad, attributes in parameters:
                one.grad = grad
                vars(one).clear()
                vars(one).update(attributes)
            vars(self.optimizer).update(optimizer)
            for one, training in modules:
                one.training = training
            with torch.no_grad():
                for one, value in buffers:
                    one.copy_(value)


class PreparedBatch:
    """The gradients of one batch, from which noisy sums are drawn.

    Args:
        step: whose optimizer clips and adds noise.
        held: per-sample gradients of each tensor, or for ghost clipping their clipped sum.
    """

    def __init__(self, step: OpacusStep, held: list[Any]) -> None:
        self._step, self._held, self.sizes = step, held, step.sizes
        with step._left_as_found():
            first, second = self._clip(), self._clip()
        # A clipping that is random itself has no clean sum.
        self.clean = first if np.array_equal(first, second) else None

    def __call__(self, size: int, rng: np.random.Generator) -> Iterator[Vector]:
        """Yield noisy sums, each clipped and drawn anew.

        Args:
            size: number of draws.
            rng: seeds the generators of Python, numpy, torch and the optimizer.

        Yields:
            Sums, shape `(P,)` each.
        """
        step = self._step
        with step._left_as_found(), seeded_globals(rng), _seeded_own(step.optimizer, rng):
            for _ in range(size):
                self._clip()
                step.optimizer.add_noise()
                yield _join_tensors([one.grad for one in step._parameters])

    def _clip(self) -> Vector:
        """Let the optimizer clip and sum; return its sum."""
        step = self._step
        for one, value in zip(step._parameters, self._held, strict=True):
            one.summed_grad = None
            if step._ghost:
                one.grad = value.clone()
            else:
                # A new tensor object: Opacus marks those that a step has used.
                one.grad_sample = value.view_as(value)
        (step.optimizer.accumulate if step._ghost else step.optimizer.clip_and_accumulate)()
        return _join_tensors([one.summed_grad for one in step._parameters])


@contextmanager
def _seeded_own(optimizer: Any, rng: np.random.Generator) -> Iterator[None]:
    """Seed the generator that the optimizer has, if any, and put it back."""
    generator = optimizer.generator
    if generator is None or optimizer.secure_mode:
        # A cryptographic generator has no seed.
        yield
        return
    state = generator.get_state()
    generator.manual_seed(int(rng.integers(2**63)))
    try:
        yield
    finally:
        generator.set_state(state)


def _join_tensors(tensors: list[Any]) -> Vector:
    return np.concatenate([numpy_of(one).astype(np.float64).ravel() for one in tensors])


def _batch_size(records: Any) -> int:
    if not isinstance(records, Sized):
        raise mistyped("records", "a batch with a length", records)
    if len(records) == 0:
        raise invalid("records", "a batch of one record or more", "none")
    return len(records)


def _refuse_changes(held: list[Any], again: list[Any]) -> None:
    """Refuse a model that is random: its sums differ from call to call."""
    for one, other in zip(held, again, strict=True):
        scale = float(one.abs().max()) if one.numel() else 0.0
        if scale and float((one - other).abs().max()) > _BATCH_SUM_TOLERANCE * scale:
            requirement = "the same at each call for the same records (set random layers to eval)"
            raise invalid("losses(model, records)", requirement, "other gradients at a second call")


def _check_optimizer(optimizer: Any) -> None:
    optimizers = _require_module("opacus.optimizers")
    if not isinstance(optimizer, optimizers.DPOptimizer):
        requirement = f"an optimizer of Opacus, which make_private returns ({_OWN_FUNCTION_ADVICE})"
        raise mistyped("optimizer", requirement, optimizer)
    names = " ".join(kind.__name__ for kind in type(optimizer).__mro__)
    if any(part in names for part in _REFUSED_OPTIMIZERS):
        clipping = "flat, per-layer or ghost clipping in one process"
        requirement = f"one of {clipping} ({_OWN_FUNCTION_ADVICE})"
        raise invalid("optimizer", requirement, type(optimizer).__name__)


def _check_module(model: Any) -> None:
    """Check that Opacus computes per-sample gradients of this model."""
    torch, grad_sample = _require_module("torch"), _require_module("opacus.grad_sample")
    if not isinstance(model, torch.nn.Module):
        raise mistyped("model", "a torch module that Opacus wraps", model)
    wrapped = isinstance(model, grad_sample.AbstractGradSampleModule)
    if wrapped or has_all(model, "autograd_grad_sample_hooks"):
        return
    errors = _require_module("opacus.validators").ModuleValidator.validate(model, strict=False)
    if errors:
        requirement = f"a module that Opacus takes ({errors[0]}; {_OWN_FUNCTION_ADVICE})"
        raise invalid("model", requirement, type(model).__name__) from errors[0]
    requirement = "the module that make_private returns, or opacus.GradSampleModule(model)"
    raise mistyped("model", requirement, type(model).__name__)


def _check_kind(model: Any, ghost: bool) -> None:
    """Check that the model computes what the optimizer takes."""
    kind = _require_module("opacus.grad_sample").GradSampleHooksFastGradientClipping
    if ghost != isinstance(model, kind):
        wanted = "GradSampleModuleFastGradientClipping" if ghost else "GradSampleModule"
        requirement = f"a {wanted}, as the optimizer requires"
        raise mistyped("model", requirement, type(model).__name__)
