"""Adapters for torch: distributions as additive noise, and modules as noise layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import invalid, mistyped, show
from ..events.event import numpy_of
from ..packages import has_all
from ..streams import check_size, seeded_torch
from .scipy import Adapter, input_to_real_array


@dataclass(frozen=True, slots=True, repr=False)
class TorchNoise(Adapter):
    """Mechanism that adds noise to the input x; the noise is drawn from a torch distribution.

    If the batch shape and the event shape of the distribution are empty, each entry of x gets a
    separate draw. For other distributions, the batch shape followed by the event shape must equal
    the shape of x. One draw then has the shape of x. The noise has the dtype of the distribution's
    parameters, which is float32 by default. torch adds the noise to x and determines the dtype of
    the sum. The input x is not converted before the addition.

    Each call sets the full state of torch's default CPU generator from `rng`, and afterwards
    restores the previous state. A CUDA generator gets a 64-bit seed from `rng` in the same way.

    Args:
        distribution: an instance of a subclass of `torch.distributions.Distribution`.

    Source:
        Dwork, McSherry, Nissim and Smith (2006) for additive noise.

    Example:
        `dpcore.audit` recognises a distribution::

            import torch

            noise = torch.distributions.Laplace(torch.tensor(0.0), torch.tensor(2.0))
            dpcore.audit(noise, ([0.0], [1.0]), claim=0.5)
    """

    distribution: Any

    wrapped: ClassVar[tuple[str, ...]] = ("a distribution of torch", "sample")

    def __repr__(self) -> str:
        return f"TorchNoise({show(self.distribution)})"

    @property
    def device_type(self) -> str:
        """Type of the device of the distribution's parameters, such as "cpu" or "cuda"."""
        return _device_type(iter(vars(self.distribution).values()))

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw `size` outputs on `x`, and return them as a numpy array."""
        return numpy_of(self.tensor(x, size, rng))

    def tensor(self, x: Any, size: int, rng: np.random.Generator) -> Any:
        """Draw `size` noisy copies of `x`, and return them as a tensor.

        Args:
            x: the input: an array of real numbers or a tensor, with any shape.
            size: number of outputs.
            rng: numpy Generator that seeds torch's generator for this call.

        Returns:
            Tensor of the outputs on the distribution's device, shape `(size, *x.shape)`.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if the shape of the distribution does not fit the shape of x.
        """
        point = _make_tensor(x)
        own = (*self.distribution.batch_shape, *self.distribution.event_shape)
        if own not in ((), tuple(point.shape)):
            requirement = f"of shape () or {own} like {self.name}"
            raise invalid("x", requirement, tuple(point.shape))
        with seeded_torch(rng):
            noise = self.distribution.sample((size,) if own else (size, *point.shape))
        return point.to(noise.device) + noise


@dataclass(frozen=True, slots=True, repr=False)
class TorchModule(Adapter):
    """Mechanism that passes its input to a `torch.nn.Module`, such as a noise layer or a model.

    To draw `size` outputs, the mechanism makes a batch of `size` copies of the input x. The module
    gets the whole batch in one call, without gradients, and in its current mode (train or eval).
    Floats in x are rounded to the dtype of the module's parameters, or to torch's default dtype if
    the module has no float parameters. Integers keep their dtype. A tensor x keeps its dtype too.

    Rows of the batch must not influence each other. Otherwise the outputs are not independent. A
    batch norm that uses batch statistics mixes the rows. Therefore a call raises a ValueError if
    the module contains such a batch norm. Each call seeds torch's default generators from `rng`,
    and afterwards restores their previous states. If a module has its own generator, a second audit
    with the same seed gets other outputs.

    Args:
        module: the module, whose `forward` takes one tensor and returns one tensor.

    Source:
        Krishna, Gupta and Dupuy (2021), where the mechanism is a layer of an autoencoder.

    Example:
        `dpcore.audit` recognises a module::

            class Noise(torch.nn.Module):
                def forward(self, x):
                    return x + torch.distributions.Laplace(0.0, 2.0).sample(x.shape)

            dpcore.audit(Noise(), ([0.0], [1.0]), claim=0.5)
    """

    module: Any

    wrapped: ClassVar[tuple[str, ...]] = ("a module of torch", "forward")

    def __repr__(self) -> str:
        return f"TorchModule({show(self.module)})"

    @property
    def device_type(self) -> str:
        """Type of the device of the module's parameters and buffers, such as "cpu" or "cuda"."""
        return _device_type(chain(self.module.parameters(), self.module.buffers()))

    @property
    def torch_threads(self) -> int | None:
        """Number of torch threads during a call of the module, or None for torch's own setting.

        The number is 1 if the module is a noise layer of dpcore. Otherwise the value is None.
        """
        return 1 if _draws_float64(self.module) else None

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Pass a batch of `size` copies of `x` to the module; return the outputs as an array."""
        return numpy_of(self.tensor(x, size, rng))

    def tensor(self, x: Any, size: int, rng: np.random.Generator) -> Any:
        """Pass a batch of `size` copies of `x` to the module; return the outputs as a tensor.

        Args:
            x: the input: an array of real numbers or a tensor, with any shape.
            size: number of outputs.
            rng: numpy Generator that seeds torch's generators for this call.

        Returns:
            The tensor that the module returned, shape `(size, ...)`.

        Raises:
            TypeError: if x does not hold real numbers, or the module does not return a tensor.
            ValueError: if the module contains a batch norm that uses batch statistics.
        """
        torch = import_module("torch")
        refuse_mixing(self.module)
        point = self._placed(torch, x)
        batch = point.unsqueeze(0).repeat(check_size(size, point.numel()), *([1] * point.dim()))
        with seeded_torch(rng), torch.no_grad():
            output = self.module(batch)
        if not isinstance(output, torch.Tensor):
            requirement = "one tensor (wrap the module in one that picks it out)"
            raise mistyped(f"outputs of {self.name}", requirement, _describe_output(output))
        return output

    def _placed(self, torch: Any, x: Any) -> Any:
        """Move the input to the module's device; convert floats to the module's dtype.

        If the input is a tensor, it keeps its dtype.
        """
        # A learnt float64 epsilon does not determine the dtype in which the layer computes.
        parts = [part for part in self.module.modules() if not _draws_float64(part)]
        held = (t for m in parts for t in chain(m.parameters(False), m.buffers(False)))
        like = next((tensor for tensor in held if tensor.is_floating_point()), None)
        point = _make_tensor(x)
        if point.is_floating_point() and not isinstance(x, torch.Tensor):
            point = point.to(torch.get_default_dtype() if like is None else like.dtype)
        return point if like is None else point.to(like.device)


def refuse_mixing(module: Any, name: str = "module") -> None:
    """Raise a ValueError if a batch norm of a module mixes the rows of a batch.

    The outputs for different rows would then depend on each other.

    Args:
        module: a torch module.
        name: name of the module in the error message.

    Raises:
        ValueError: if the module contains a batch norm that uses batch statistics.
    """
    torch = import_module("torch")
    for layer in module.modules():
        mixes = isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)
        if mixes and (layer.training or layer.running_mean is None):
            requirement = "without a batch norm that mixes the rows of a batch (call eval() first)"
            raise invalid(name, requirement, layer)


def _draws_float64(module: Any) -> bool:
    """Return True if a module is a noise layer of dpcore that draws its noise in float64."""
    return has_all(module, "keeps_float64")


def _make_tensor(x: Any) -> Any:
    torch = import_module("torch")
    if isinstance(x, torch.Tensor):
        return x
    # The copy is needed because torch warns about read-only arrays, such as those of a pair.
    numbers = input_to_real_array(x).copy()
    try:
        return torch.from_numpy(numbers)
    except TypeError:
        raise mistyped("x", "numbers of a type that torch has", x) from None


def _device_type(held: Iterator[Any]) -> str:
    torch = import_module("torch")
    devices = (tensor.device.type for tensor in held if isinstance(tensor, torch.Tensor))
    return str(next(devices, "cpu"))


def _describe_output(output: Any) -> str:
    """Describe a module's output that is not a tensor, for an error message."""
    kind = type(output).__name__
    if isinstance(output, Mapping):
        return f"{kind} with {', '.join(map(repr, output))}"
    if isinstance(output, (tuple, list)):
        return f"{kind} of {', '.join(type(part).__name__ for part in output) or 'nothing'}"
    return f"{kind}: {show(output)}"
