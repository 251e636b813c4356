"""Sampling: the public function for the compiled samplers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import mistyped
from ..hints import hinted
from ..mechanisms.native import Native, fill_outputs
from ..published import is_native
from ..streams import Rng


@hinted
def sample(
    mech: Native,
    x: npt.ArrayLike,
    size: int,
    *,
    rng: Rng = None,
    out: npt.NDArray[Any] | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
) -> npt.NDArray[Any]:
    """Draw outputs of a native mechanism, in parallel, straight into a numpy array.

    For audits and experiments, not for releasing data: the last bits of floating-point outputs give
    the input away, as in every textbook sampler, and the generator is not cryptographic: whoever
    learns its seed removes the noise.

    These are the samplers that an audit counts: there is no second implementation. The result
    depends on the seed alone, not on the number of threads or the CPU. All noises read the same
    random words at one seed: samples that must be independent of each other need different seeds.

    Args:
        mech: a native mechanism, such as `dpcore.Laplace(1.0)` or a published system.
        x: the input, shape `(dim,)`, dim at least 1, finite.
        size: number of outputs, at least 0.
        rng: None, an int in [0, 2**63) or a numpy Generator.
        out: array to fill, C-contiguous, writeable, of shape `(size, dim)` and type `dtype`; None
            allocates one.
        dtype: float64, or float32 (rounded once, after the noise has been added in float64).
        threads: number of threads; None for all cores.

    Returns:
        Outputs of shape `(size, dim)`; `out` itself if it was given.

    Raises:
        TypeError: if an argument is of the wrong kind (a Python callable is called directly).
        ValueError: if a value, a shape or a layout is wrong.
        KeyboardInterrupt: on Ctrl-C; `out` is then filled in part.

    Source:
        Why not for releases: Mironov (2012), On significance of the least significant bits for
        differential privacy.

    Example:
        >>> import dpcore
        >>> outputs = dpcore.sample(dpcore.Laplace(1.0), [0.0, 5.0], 1000, rng=1)
        >>> outputs.shape, outputs.dtype
        ((1000, 2), dtype('float64'))
        >>> bool((outputs == dpcore.sample(dpcore.Laplace(1.0), [0.0, 5.0], 1000, rng=1)).all())
        True

        Twice the scale, the same words:

        >>> double = dpcore.sample(dpcore.Laplace(2.0), [0.0], 3, rng=1)
        >>> bool((double == 2 * dpcore.sample(dpcore.Laplace(1.0), [0.0], 3, rng=1)).all())
        True
    """
    if not is_native(mech):
        raise mistyped("mech", "a native mechanism (call any other one itself)", mech)
    return fill_outputs(mech, x, size, rng, out, dtype, threads)
