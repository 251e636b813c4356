"""torch: distributions as additive noise, modules as noise layers."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import invalid, show
from ..mechanisms.answers import of_format
from ..streams.generators import seeded_torch
from ._adapter import Adapter, numbers

__all__ = ["TorchModule", "TorchNoise", "numpy_of", "refuse_mixing"]


@dataclass(frozen=True, slots=True, repr=False)
class TorchNoise(Adapter):
    """Additive noise ``x + s`` with s from a `torch.distributions.Distribution`.

    A scalar distribution gives every entry of x a draw of its own; any other must have the shape
    of x in its batch and event dimensions together. The noise has the distribution's dtype
    (float32 unless its parameters say otherwise); the sum is torch's, on x as it is.

    torch's default generators are given a whole state from `rng` for each call and put back
    afterwards; those of CUDA, which count from a seed, one of 64 bits.

    Args:
        distribution: the distribution.

    Source:
        Dwork, McSherry, Nissim and Smith (2006) for additive noise.

    Example:
        A distribution is found by itself::

            import torch

            noise = torch.distributions.Laplace(torch.tensor(0.0), torch.tensor(2.0))
            dpcore.audit(noise, ([0.0], [1.0]), claim=0.5)
    """

    distribution: Any

    def __repr__(self) -> str:
        return f"TorchNoise({show(self.distribution)})"

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw outputs on `x`.

        Args:
            x: real numbers or a tensor, any shape.
            size: number of outputs.
            rng: a numpy Generator.

        Returns:
            Outputs of shape `(size, *x.shape)`.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if the distribution has another shape than x.
        """
        point = _tensor(x)
        own = (*self.distribution.batch_shape, *self.distribution.event_shape)
        if own not in ((), tuple(point.shape)):
            requirement = f"of shape () or {own} like {self.name}"
            raise invalid("x", requirement, tuple(point.shape))
        with seeded_torch(rng):
            noise = self.distribution.sample((size,) if own else (size, *point.shape))
        return numpy_of(point.to(noise.device) + noise)


@dataclass(frozen=True, slots=True, repr=False)
class TorchModule(Adapter):
    """A `torch.nn.Module` that takes one batch: a noise layer, an encoder, a whole model.

    x is repeated along a new first dimension and the batch goes through `module` in the mode
    (train or eval) that it is in, without gradients. Floating point x is rounded to the dtype of
    the module's parameters, or to torch's default dtype where there are none; integers and
    tensors keep theirs.

    Rows of the batch must not influence each other, or the outputs are not independent: a batch
    norm that looks at the batch is refused. torch's default generators are seeded from `rng` for
    each call and put back afterwards; a module with a generator of its own is not repeatable.

    Args:
        module: the module.

    Source:
        Krishna, Gupta and Dupuy (2021), where the mechanism is a layer of an autoencoder.

    Example:
        A module is found by itself::

            class Noise(torch.nn.Module):
                def forward(self, x):
                    return x + torch.distributions.Laplace(0.0, 2.0).sample(x.shape)

            dpcore.audit(Noise(), ([0.0], [1.0]), claim=0.5)
    """

    module: Any

    def __repr__(self) -> str:
        return f"TorchModule({show(self.module)})"

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Run a batch of `size` copies of `x` through the module.

        Args:
            x: real numbers or a tensor, any shape.
            size: number of outputs.
            rng: a numpy Generator.

        Returns:
            Outputs of shape `(size, ...)`.

        Raises:
            TypeError: if x does not hold real numbers.
            ValueError: if the module holds a batch norm that mixes the rows.
        """
        torch = import_module("torch")
        refuse_mixing(self.module)
        point = self._placed(torch, x)
        batch = point.unsqueeze(0).repeat(size, *(1 for _ in point.shape))
        with seeded_torch(rng), torch.no_grad():
            return numpy_of(self.module(batch))

    def _placed(self, torch: Any, x: Any) -> Any:
        """The input on the module's device and, if it was no tensor, in its dtype."""
        held = chain(self.module.parameters(), self.module.buffers())
        like = next((tensor for tensor in held if tensor.is_floating_point()), None)
        point = _tensor(x)
        if point.is_floating_point() and not isinstance(x, torch.Tensor):
            point = point.to(torch.get_default_dtype() if like is None else like.dtype)
        return point if like is None else point.to(like.device)


def refuse_mixing(module: Any, name: str = "module") -> None:
    """Refuse a module with a batch norm that looks at the batch: its rows depend on each other.

    Args:
        module: a torch module.
        name: what the complaint calls it.

    Raises:
        ValueError: if it holds one.
    """
    torch = import_module("torch")
    for layer in module.modules():
        mixes = isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)
        if mixes and (layer.training or layer.running_mean is None):
            raise invalid(name, "without a batch norm that mixes the rows of a batch", layer)


def _tensor(x: Any) -> Any:
    torch = import_module("torch")
    # A copy: torch warns of arrays that are not writeable, as those of a pair are.
    return x if isinstance(x, torch.Tensor) else torch.from_numpy(numbers(x).copy())


def numpy_of(tensor: Any) -> npt.NDArray[Any]:
    """The numbers of a tensor as an array, with a word on a format that numpy does not have."""
    torch = import_module("torch")
    tensor = tensor.detach().cpu()
    # numpy has no bfloat16; float32 holds its values exactly.
    if tensor.dtype == torch.bfloat16:
        return of_format(tensor.float().numpy(), "bfloat16")
    found: npt.NDArray[Any] = tensor.numpy()
    return found
