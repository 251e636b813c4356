"""Audited mechanisms of numpy, scipy, torch, jax-privacy, Opacus and private-pgm (mbi)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from .cases import Case, import_object

_LAPLACE: Final = "Dwork and Roth (2014), theorem 3.6: Laplace noise of scale sensitivity / epsilon"
_GAUSSIAN: Final = "Dwork and Roth (2014), theorem A.1: sigma = sqrt(2 log(1.25 / delta)) / epsilon"
_GEOMETRIC: Final = "Ghosh, Roughgarden and Sundararajan (2009): two-sided geometric noise"
_EXPONENTIAL: Final = "McSherry and Talwar (2007): probabilities exp(epsilon utility / 2)"
_RESPONSE: Final = "Warner (1965); Dwork and Roth (2014), section 3.2: randomised response"
_EXACT: Final = "Balle and Wang (2018), theorem 8: the exact epsilon of Gaussian noise"


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """Return epsilon of Gaussian noise at `delta`.

    `mu` is the distance of the two inputs, divided by the standard deviation of the noise.
    """
    phi, low, high = NormalDist().cdf, 0.0, 700.0
    for _ in range(100):
        middle = (low + high) / 2
        value = phi(mu / 2 - middle / mu) - math.exp(middle) * phi(-mu / 2 - middle / mu)
        low, high = (middle, high) if value > delta else (low, middle)
    return high


def _classical_sigma(epsilon: float, delta: float) -> float:
    """Return the classical standard deviation of Gaussian noise, valid for epsilon below 1.

    The formula is theorem A.1 of Dwork and Roth (2014).
    """
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


# ------------------------------------------------------------------ numpy, scipy and torch

_numpy = partial(
    Case, package="numpy", version="2.4.6", relation="numbers at distance 1", pair=(0.0, 1.0),
    trials=10**6,
)  # fmt: skip
_scipy = partial(
    Case, package="scipy", version="1.17.1", relation="numbers at distance 1",
    pair=([0.0], [1.0]), trials=10**6,
)  # fmt: skip
_torch = partial(
    Case, package="torch", version="2.15.0", relation="numbers at distance 1",
    pair=([0.0], [1.0]), trials=10**6,
)  # fmt: skip


def _build_noise(draw: Callable[[Any, Any], Any]) -> Callable[[], Callable[..., Any]]:
    """Return a function that builds a mechanism that adds the noise `draw(rng, shape)`."""

    def build() -> Callable[..., Any]:
        def add_noise(x: Any, size: int, rng: Any) -> Any:
            value = np.asarray(x)
            return value + draw(rng, (size, *value.shape))

        return add_noise

    return build


def _draw_geometric(rng: Any, shape: Any, epsilon: float = 1.0) -> Any:
    p = -math.expm1(-epsilon)
    return rng.geometric(p, shape) - rng.geometric(p, shape)


def _softmax_indices(x: Any, size: int, rng: Any) -> Any:
    weights = np.exp(np.asarray(x) / 2)
    return rng.choice(len(weights), size, p=weights / weights.sum())


def _gumbel_max_indices(x: Any, size: int, rng: Any) -> Any:
    return np.argmax(np.asarray(x) + rng.gumbel(scale=2.0, size=(size, len(x))), axis=1)


def _respond_at_random(x: Any, draws: int, rng: Any) -> Any:
    return np.where(rng.random(draws) < math.e / (1 + math.e), x, 1 - x)


def _draw_noisy_histograms(x: Any, size: int, rng: Any) -> Any:
    counts, _ = np.histogram(x, bins=3, range=(0.0, 3.0))
    return counts + rng.laplace(size=(size, 3))


_SMALL: Final = (_classical_sigma(0.5, 1e-2), _classical_sigma(8.0, 0.1))
_CHOICE_LOSS: Final = 1.0 + math.log((math.exp(-0.5) / 9 + 1) / (math.exp(0.5) / 9 + 1))
_CHOICES: Final = ([0.0] + [1.0] * 9, [1.0] + [0.0] * 9)

_TEXTBOOKS: Final = (
    _numpy(name="x + Generator.laplace(scale=1)", build=_build_noise(lambda rng, n:
          rng.laplace(size=n)), claim=1.0, stated=_LAPLACE, true_loss=1.0),
    _numpy(name="x + Generator.laplace(scale=.2)", claim=5.0, stated=_LAPLACE, true_loss=5.0,
           build=_build_noise(lambda rng, n: rng.laplace(scale=0.2, size=n))),
    _numpy(name="x + Generator.laplace(scale=10)", claim=0.1, stated=_LAPLACE, true_loss=0.1,
           build=_build_noise(lambda rng, n: rng.laplace(scale=10.0, size=n))),
    _numpy(name="vector of 8 + Generator.laplace(scale=8)", claim=1.0, stated=_LAPLACE,
           build=_build_noise(lambda rng, n: rng.laplace(scale=8.0, size=n)), trials=200_000,
           pair=(np.zeros(8), np.ones(8)), relation="vectors at l1 distance 8", true_loss=1.0),
    _numpy(name="histogram + Generator.laplace(scale=1)", build=lambda: _draw_noisy_histograms,
           pair=([0.5] * 4, [0.5] * 5), relation="one row is added", claim=1.0, stated=_LAPLACE,
           true_loss=1.0),
    _numpy(name="x + Generator.normal(classical sigma, epsilon=.5, delta=.01)", claim=0.5,
           build=_build_noise(lambda rng, n: rng.normal(scale=_SMALL[0], size=n)), delta=1e-2,
           stated=_GAUSSIAN, true_loss=_gaussian_epsilon(1 / _SMALL[0], 1e-2)),
    _numpy(name="x + Generator.normal(classical sigma, epsilon=8, delta=.1)", claim=8.0,
           build=_build_noise(lambda rng, n: rng.normal(scale=_SMALL[1], size=n)), delta=0.1,
           stated=_GAUSSIAN, true_loss=_gaussian_epsilon(1 / _SMALL[1], 0.1),
           reading="known misuse",
           cause="the theorem holds for epsilon below 1 only (eeprivacy 0.0.5 does the same)"),
    _numpy(name="x + Generator.standard_normal()", claim=_gaussian_epsilon(1.0, 1e-2), delta=1e-2,
           build=_build_noise(lambda rng, n: rng.standard_normal(n)), stated=_EXACT,
           true_loss=_gaussian_epsilon(1.0, 1e-2)),
    _numpy(name="n + Generator.geometric() - Generator.geometric()", claim=1.0, pair=(0, 1),
          build=_build_noise(_draw_geometric), stated=_GEOMETRIC,
          relation="counts that differ by 1", true_loss=1.0),
    _numpy(name="Generator.choice(10, p=softmax(u / 2))", claim=1.0, stated=_EXPONENTIAL,
           build=lambda: _softmax_indices, pair=_CHOICES, relation="utilities that differ by 1",
           true_loss=_CHOICE_LOSS),
    _numpy(name="argmax(u + Generator.gumbel(scale=2))", claim=1.0, stated=_EXPONENTIAL,
           build=lambda: _gumbel_max_indices, pair=_CHOICES, relation="utilities that differ by 1",
           true_loss=_CHOICE_LOSS),
    _numpy(name="randomised response with Generator.random", claim=1.0, stated=_RESPONSE,
           build=lambda: _respond_at_random, pair=(0, 1), relation="the two values", true_loss=1.0),
    _scipy(name="x + stats.laplace(scale=1)", claim=1.0, stated=_LAPLACE, true_loss=1.0,
           build=lambda: import_object("scipy.stats:laplace")(scale=1.0)),
    _scipy(name="x + stats.Normal()", claim=_gaussian_epsilon(1.0, 1e-2), delta=1e-2,
           build=lambda: import_object("scipy.stats:Normal")(), stated=_EXACT,
           true_loss=_gaussian_epsilon(1.0, 1e-2)),
    _scipy(name="x + stats.norm(scale=1)", claim=_gaussian_epsilon(1.0, 1e-2), delta=1e-2,
           build=lambda: import_object("scipy.stats:norm")(), stated=_EXACT,
           true_loss=_gaussian_epsilon(1.0, 1e-2)),
    _scipy(name="vector of 4 + stats.multivariate_normal(zeros(4))", delta=1e-2, stated=_EXACT,
           build=lambda: import_object("scipy.stats:multivariate_normal")(np.zeros(4)),
           claim=_gaussian_epsilon(1.0, 1e-2), pair=(np.zeros(4), np.full(4, 0.5)),
           relation="vectors at l2 distance 1", true_loss=_gaussian_epsilon(1.0, 1e-2)),
    _scipy(name="n + stats.dlaplace(1)", claim=1.0, stated=_GEOMETRIC, true_loss=1.0,
           build=lambda: import_object("scipy.stats:dlaplace")(1.0), pair=([0], [1]),
           relation="counts that differ by 1"),
    _torch(name="x + distributions.Laplace(0., 1.)", claim=1.0, stated=_LAPLACE, true_loss=1.0,
           build=lambda: import_object("torch.distributions:Laplace")(0.0, 1.0)),
    _torch(name="x + distributions.Laplace(0., .2)", claim=5.0, stated=_LAPLACE, true_loss=5.0,
           build=lambda: import_object("torch.distributions:Laplace")(0.0, 0.2)),
    _torch(name="x + distributions.Normal(0., 1.)", claim=_gaussian_epsilon(1.0, 1e-2), delta=1e-2,
           build=lambda: import_object("torch.distributions:Normal")(0.0, 1.0), stated=_EXACT,
           true_loss=_gaussian_epsilon(1.0, 1e-2)),
)  # fmt: skip

# ------------------------------------------------------------------------------ jax-privacy

_jax = partial(
    Case, package="jax-privacy", version="2.0.0", relation="a gradient of norm 1 is added",
    claim=_gaussian_epsilon(1.0, 0.05), delta=0.05, pair=(0.0, 1.0), trials=200_000,
    release="the noisy gradients",
)  # fmt: skip
_STREAM: Final = ([0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0])
_MATRIX: Final = "noise_addition.py:143: covariance of the noise; matrix_factorization/{}"


def _noise_builder(make: Callable[[Any], Any], dtype: str = "float32") -> Callable[[], Any]:
    """Return a function that builds a mechanism that adds noise to gradients.

    The input contains one gradient for each training step.

    Each gradient has many equal entries with independent noise, and each entry gives one output.
    """

    def build() -> Callable[..., Any]:
        full = import_object("jax.numpy:full")

        def add_noise(x: Any, size: int, rng: Any) -> Any:
            privatizer = make(int(rng.integers(2**31)))
            steps = [full(size, value, dtype=dtype) for value in np.atleast_1d(x)]
            state, outputs = privatizer.init(steps[0]), []
            for step in steps:
                output, state = privatizer.update(step, state)
                outputs.append(np.asarray(output, dtype=np.float64))
            return outputs[0] if len(outputs) == 1 else np.stack(outputs, axis=1)

        return add_noise

    return build


def _make_gaussian_privatizer(key: int) -> Any:
    return import_object("jax_privacy.noise_addition:gaussian_privatizer")(stddev=1.0, prng_key=key)


@cache
def _toeplitz_inverse_and_norm() -> tuple[Any, float]:
    """Return the inverse of a Toeplitz matrix for 4 steps, and the matrix's sensitivity.

    The sensitivity is the largest norm of a column.
    """
    root = "jax_privacy.matrix_factorization"
    strategy = import_object(f"{root}.toeplitz:optimal_max_error_strategy_coefs")(4)
    matrix = import_object(f"{root}.toeplitz:materialize_lower_triangular")(strategy)
    norm = import_object(f"{root}.sensitivity:single_participation_sensitivity")(matrix)
    return np.linalg.inv(np.asarray(matrix)), float(norm)


@cache
def _buffered_inverse_and_norm() -> tuple[Any, float]:
    """Return the inverse of a buffered Toeplitz matrix, and the norm of its first column."""
    root = "jax_privacy.matrix_factorization.buffered_toeplitz"
    build = import_object(f"{root}:BufferedToeplitz").build
    toeplitz = build([0.9, 0.5], [0.3, 0.2], dtype="float32")
    norm = float(import_object(f"{root}:sensitivity_squared")(toeplitz, n=4)) ** 0.5
    return toeplitz.inverse_as_streaming_matrix(), norm


def _make_matrix_privatizer(key: int, find: Callable[[], tuple[Any, float]]) -> Any:
    make = import_object("jax_privacy.noise_addition:matrix_factorization_privatizer")
    matrix, norm = find()
    return make(matrix, stddev=norm, prng_key=key)


def _make_banded_matrix_plan(**options: Any) -> Any:
    kind = import_object("jax_privacy.experimental.execution_plan:BandMFExecutionPlanConfig")
    return kind(**{"epsilon": None, "delta": None} | options).plan


def _banded_noise(key: int, **options: Any) -> Any:
    options = {"iterations": 4, "noise_multiplier": 1.0, "noise_seed": key} | options
    return _make_banded_matrix_plan(**options).noise_addition_transform


def _make_buffered_toeplitz(key: int) -> Any:
    root = "jax_privacy.matrix_factorization.buffered_toeplitz"
    build = import_object(f"{root}:BufferedToeplitz").build
    toeplitz = build([0.9, 0.5], [0.3, 0.2], dtype="float32")
    norm = float(import_object(f"{root}:sensitivity_squared")(toeplitz, n=4)) ** 0.5
    inverse = toeplitz.inverse_as_streaming_matrix()
    make = import_object("jax_privacy.noise_addition:matrix_factorization_privatizer")
    return make(inverse, stddev=norm, prng_key=key)


def _train_builder(**options: Any) -> Callable[[], Any]:
    """Return a function that builds a mechanism for training a linear model.

    The training uses an execution plan of jax-privacy. The output contains one noisy gradient for
    each batch.
    """

    def build() -> Callable[[Any], Any]:
        numpy, plan = import_object("jax.numpy"), _make_banded_matrix_plan(**options)
        gradient = plan.clipped_grad(lambda w, row: (w * row).sum(), argnums=0, batch_argnums=1)
        noise, jit = plan.noise_addition_transform, import_object("jax:jit")
        place: list[Any] = []
        update = jit(lambda rows, state: noise.update(gradient(numpy.zeros(()), rows), state))

        def train(x: Any) -> Any:
            if not place:
                place.append(noise.init(numpy.zeros(())))
            outputs = []
            for rows in plan.batch_selection_strategy.batch_iterator(len(x)):
                batch = np.zeros(len(x), dtype=np.float32)
                batch[: len(rows)] = np.asarray(x)[rows]
                output, place[0] = update(batch, place[0])
                outputs.append(float(output))
            return outputs

        return train

    return build


def _sum_clipped_and_add_noise(x: Any, size: int, rng: Any) -> Any:
    gradient = import_object("jax_privacy.clipping:clipped_grad")(
        lambda w, row: (w * row).sum(), batch_argnums=1, l2_clip_norm=1.0
    )
    total = gradient(np.float32(0.0), np.asarray(x, dtype=np.float32))
    return _noise_builder(_make_gaussian_privatizer)()(float(total), size, rng)


_PLAN: Final = "experimental/execution_plan.py:82: the event of a plan is called verified"

_JAX: Final = (
    _jax(name="gaussian_privatizer(stddev=1.)", build=_noise_builder(_make_gaussian_privatizer),
         stated="noise_addition.py:143, docstring; " + _EXACT,
         true_loss=_gaussian_epsilon(1.0, 0.05)),
    _jax(name="gaussian_privatizer(stddev=1.), gradients of type bfloat16", true_loss=math.inf,
         build=_noise_builder(_make_gaussian_privatizer, "bfloat16"),
         stated="noise_addition.py:143, docstring; " + _EXACT, cause="noise of the type of the "
         "gradients has eight significant bits, which show the input (noise_addition.py:255)"),
    _jax(name="gaussian_privatizer(stddev=1.), 4 steps", pair=([0.0] * 4, [0.5] * 4),
         build=_noise_builder(_make_gaussian_privatizer),
         stated="noise_addition.py:143, docstring; " + _EXACT,
         relation="an example with gradients of norm .5 in 4 steps is added",
         true_loss=_gaussian_epsilon(1.0, 0.05)),
    _jax(name="clipped_grad(loss) + gaussian_privatizer(stddev=1.)", pair=([0.0], [0.0, 1e4]),
         build=lambda: _sum_clipped_and_add_noise, relation="one row is added",
         stated="clipping.py:281: sensitivity l2_clip_norm",
         true_loss=_gaussian_epsilon(1.0, 0.05)),
    _jax(name="clipped_grad(loss) + gaussian_privatizer(stddev=1.), a missing value", claim=0.0,
         pair=([0.0], [0.0, math.nan]), build=lambda: _sum_clipped_and_add_noise,
         relation="one row is added", stated="clipping.py:123: missing values become 0",
         delta=0.0, true_loss=0.0),
    _jax(name="matrix_factorization_privatizer(inverse of 4 by 4 Toeplitz)", pair=_STREAM,
         build=_noise_builder(partial(_make_matrix_privatizer, find=_toeplitz_inverse_and_norm)),
         stated=_MATRIX.format("sensitivity.py"),
         relation="an example with one gradient of norm 1 is added",
         true_loss=_gaussian_epsilon(1.0, 0.05)),
    _jax(name="matrix_factorization_privatizer(BufferedToeplitz)", pair=_STREAM,
         build=_noise_builder(partial(_make_matrix_privatizer, find=_buffered_inverse_and_norm)),
         stated=_MATRIX.format("buffered_toeplitz.py"),
         relation="an example with one gradient of norm 1 is added"),
    _jax(name="BandMFExecutionPlanConfig(strategy=[1, .5], noise_multiplier=1)", pair=_STREAM,
         build=_noise_builder(partial(_banded_noise, strategy=np.array([1.0, 0.5]))), stated=_PLAN,
         relation="an example with one gradient of norm 1 is added",
         true_loss=_gaussian_epsilon(1.0, 0.05)),
    _jax(name="BandMFExecutionPlanConfig(strategy=[.5], column_normalize=True, noise_multiplier=1)",
         build=_noise_builder(partial(_banded_noise, strategy=np.array([0.5]),
         column_normalize=True)), pair=_STREAM, stated=_PLAN,
         relation="an example with one gradient of norm 1 is added",
         true_loss=_gaussian_epsilon(2.0, 0.05),
         cause="the noise is scaled by the norm of the strategy, although its columns are "
         "normalised to 1 (experimental/execution_plan.py:385)"),
    _jax(name="BandMFExecutionPlanConfig(epsilon=1, delta=.05, sampling_prob=.5), one step",
         build=_train_builder(strategy=np.ones(1), iterations=1, epsilon=1.0, delta=0.05,
                              sampling_prob=0.5),
         claim=1.0, pair=([0.0, 0.0], [0.0, 1.0]), stated=_PLAN, trials=20_000, seconds=300.0,
         relation="one row is replaced by one without a gradient"),
    _jax(name="BandMFExecutionPlanConfig(strategy=[1, .5], epsilon=1, delta=.05), 4 steps",
         build=_train_builder(strategy=np.array([1.0, 0.5]), iterations=4, epsilon=1.0, delta=0.05),
         claim=1.0, pair=([0.0] * 4, [0.0] * 3 + [1.0]), stated=_PLAN, trials=5_000, seconds=300.0,
         relation="one row is replaced by one without a gradient"),
)  # fmt: skip

# ----------------------------------------------------------------------------------- Opacus

_ONE_STEP: Final = 1.5794205767549996
"""`PrivacyEngine().get_epsilon(.05)` after one step with noise multiplier 1 and sample rate 1."""
_HALF_STEP: Final = 0.7502863122083178
"""`PrivacyEngine().get_epsilon(.05)` after one step with noise multiplier 1 and sample rate 1/2."""

_opacus = partial(
    Case, package="opacus", version="1.6.0", relation="one row is added", claim=_ONE_STEP,
    delta=0.05, pair=([0.0], [0.0, 5.0]), trials=5_000, seconds=300.0,
    stated="accountants/prv.py: get_epsilon(.05) after one step; privacy_engine.py:340, docstring",
    release="the parameters after one step",
)  # fmt: skip


def _sum_output_loss(outputs: Any, _: Any) -> Any:
    return outputs.sum()


def _mean_output_loss(outputs: Any, _: Any) -> Any:
    return outputs.mean()


def _build_step(
    read: Callable[[Any], list[Any]] | None = None,
    loss: Callable[[Any, Any], Any] = _sum_output_loss,
    outputs: int = 1,
    bias: bool = False,
    batches: int = 1,
    engine: str = "opacus:PrivacyEngine",
    **options: Any,
) -> Callable[[], Callable[[Any], Any]]:
    """Return a function that builds a mechanism: one DP-SGD step on a linear model.

    All parameters of the model are 0 before the step.
    """

    def build() -> Callable[[Any], Any]:
        torch, make_engine = import_object("torch"), import_object(engine)
        torch.set_num_threads(1)
        data = import_object("torch.utils.data")

        def train(x: Any) -> Any:
            rows = torch.tensor(x, dtype=torch.float32).reshape(-1, 1)
            model = torch.nn.Linear(1, outputs, bias=bias)
            torch.nn.init.zeros_(model.weight)
            loader = data.DataLoader(data.TensorDataset(rows), batch_size=len(x) // batches)
            arguments: dict[str, Any] = {
                "module": model, "optimizer": torch.optim.SGD(model.parameters(), lr=1.0),
                "data_loader": loader, "noise_multiplier": 1.0, "max_grad_norm": 1.0,
                "loss_reduction": "sum",
            }  # fmt: skip
            parts = make_engine().make_private(**arguments | options)
            (batch,) = next(iter(parts[-1]))
            criterion = parts[2] if len(parts) == 4 else loss
            parts[1].zero_grad()
            criterion(parts[0](batch), _make_constant_targets(torch, batch, options)).backward()
            parts[1].step()
            values = [value for part in model.parameters() for value in part.flatten().tolist()]
            return values + (read(parts[1]) if read else [])

        return train

    return build


def _make_constant_targets(torch: Any, batch: Any, options: dict[str, Any]) -> Any:
    """Return the targets for a loss function: class 1 for cross-entropy, and ones otherwise."""
    classes = isinstance(options.get("criterion"), torch.nn.CrossEntropyLoss)
    return torch.ones(len(batch), dtype=torch.long) if classes else torch.ones_like(batch)


def _build_ghost_clip_step(kind: str, **options: Any) -> Callable[[], Callable[[Any], Any]]:
    """Return a function that builds one DP-SGD step with a loss of torch and ghost clipping."""

    def build() -> Callable[[Any], Any]:
        criterion = import_object(f"torch.nn:{kind}")(reduction="sum")
        return _build_step(criterion=criterion, grad_sample_mode="ghost", **options)()

    return build


def _clip_norm(optimizer: Any) -> list[float]:
    return [float(optimizer.max_grad_norm)]


def _run_secure_step(x: Any) -> Any:
    """Make one step of Opacus' optimizer in secure mode. The parameter has double precision."""
    torch = import_object("torch")
    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    parameter.grad_sample = torch.tensor(x, dtype=torch.float64).reshape(-1, 1)
    optimizer = import_object("opacus.optimizers:DPOptimizer")(
        torch.optim.SGD([parameter], lr=1.0), noise_multiplier=1.0, max_grad_norm=1.0,
        expected_batch_size=None, loss_reduction="sum", secure_mode=True,
    )  # fmt: skip
    optimizer.step()
    return parameter.item()


_ADAPTIVE: Final[dict[str, Any]] = {
    "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.2, "max_clipbound": 10.0,
    "min_clipbound": 0.1,
}  # fmt: skip
_EXACT_STEP: Final = _gaussian_epsilon(1.0, 0.05)
_GHOST: Final = (
    "opacus.utils.adaptive_clipping.adaptive_clipping_utils:PrivacyEngineAdaptiveClipping"
)

_OPACUS: Final = (
    _opacus(name="make_private(noise_multiplier=1, max_grad_norm=1, loss_reduction='sum')",
            build=_build_step(), true_loss=_EXACT_STEP),
    _opacus(name="make_private(noise_multiplier=1, max_grad_norm=1), one row added",
            build=_build_step(loss=_mean_output_loss, loss_reduction="mean"),
            reading="relation unclear",
            disclosure="https://github.com/meta-pytorch/opacus/issues/571",
            cause="the gradient is divided by the expected batch size, which is computed from the "
            "number of rows (privacy_engine.py:441)"),
    _opacus(name="make_private(noise_multiplier=1, max_grad_norm=1), one row without gradient",
            build=_build_step(loss=_mean_output_loss, loss_reduction="mean"), pair=([0.0, 0.0],
            [0.0, 5.0]), relation="one row is replaced by one without a gradient",
            true_loss=_EXACT_STEP),
    _opacus(name="make_private(noise_multiplier=1, max_grad_norm=1), Poisson sampling at rate .5",
            build=_build_step(batches=2), pair=([0.0, 0.0], [0.0, 5.0]), claim=_HALF_STEP,
            relation="one row is replaced by one without a gradient", trials=10_000),
    _opacus(name="make_private(clipping='per_layer', max_grad_norm=[1, 1])",
            build=_build_step(clipping="per_layer", max_grad_norm=[1.0, 1.0], bias=True),
            pair=([0.0], [0.0, 5.0])),
    _opacus(name="make_private(grad_sample_mode='functorch')", true_loss=_EXACT_STEP,
            build=_build_step(grad_sample_mode="functorch")),
    _opacus(name="make_private(grad_sample_mode='ghost'), CrossEntropyLoss", true_loss=_EXACT_STEP,
            build=_build_ghost_clip_step("CrossEntropyLoss", outputs=2)),
    _opacus(name="make_private(grad_sample_mode='ghost'), MSELoss of outputs of shape (n, 1)",
            build=_build_ghost_clip_step("MSELoss"), pair=([0.0], [0.0, 10.0]),
            true_loss=_gaussian_epsilon(21.0, 0.05),
            cause="losses of shape (n, 1), which :44 asks for, are multiplied by coefficients of "
            "shape (n,), so that the product has n by n entries and no gradient is clipped "
            "(utils/fast_gradient_clipping_utils.py:195)"),
    _opacus(name="make_private(clipping='adaptive', unclipped_num_std=.51)", trials=5_000,
          build=_build_step(_clip_norm, clipping="adaptive", unclipped_num_std=0.51, **_ADAPTIVE),
          pair=([5.0] * 20, [5.0] * 20 + [0.9999]),
          release="the parameters after one step and the next clipping bound",
          cause="a row changes the count of gradients below the bound by 1, and the noise is "
          "for 1 / 2: the count is not centred (optimizers/adaclipoptimizer.py:141 and 108)"),
    _opacus(name="PrivacyEngineAdaptiveClipping.make_private(grad_sample_mode='ghost'), 12 rows",
            build=_build_ghost_clip_step("CrossEntropyLoss", outputs=2, engine=_GHOST, **_ADAPTIVE),
            pair=([0.0] * 12, [0.0] * 11 + [5.0]), trials=2_000, seconds=600.0,
            relation="one row is replaced by one without a gradient",
            cause="the criterion is called with its reduction: there is one loss for the batch, "
            "and no gradient is clipped (utils/adaptive_clipping/adaptive_clipping_utils.py:222)"),
    _opacus(name="make_private(max_grad_norm=1), an infinite gradient", build=_build_step(),
            pair=([0.0], [0.0, math.inf]), reading="relation unclear", true_loss=math.inf,
            cause="the norm is infinite, and 0 times infinity is not a number "
            "(optimizers/optimizer.py:453); the package does not say that gradients are finite"),
    _opacus(name="DPOptimizer(secure_mode=True), parameter of type float64", trials=20_000,
            build=lambda: _run_secure_step, pair=([0.0], [0.0, 1 / 3]),
            stated="optimizers/optimizer.py:122: secure against floating-point attacks",
            attack=lambda: import_object("dpcore.attacks:FloatLattice")(),
            disclosure="https://github.com/meta-pytorch/opacus/issues/616",
            cause="the noise is drawn in single precision, so that the last bits of the sum are "
            "those of the gradient (optimizers/optimizer.py:153)"),
)  # fmt: skip

# ------------------------------------------------------------------------------ private-pgm

_mbi = partial(
    Case, package="mbi", version="2.0.0", relation="one row is added",
    claim=1.0, stated="README: a model of noisy marginals, which is post-processing",
    release="the estimated marginals", trials=20_000, seconds=300.0,
)  # fmt: skip


def _build_marginals_and_model(estimator: str) -> Callable[[], Callable[[Any], Any]]:
    """Return a function that builds a mechanism for fitting a model to two noisy marginals."""

    def build() -> Callable[[Any], Any]:
        make_domain, measure = map(import_object, ("mbi:Domain", "mbi:LinearMeasurement"))
        kind, domain = import_object(f"mbi.estimation:{estimator}"), make_domain("ab", [2, 2])
        rng = np.random.default_rng()

        def estimate(x: Any) -> Any:
            counts = np.asarray(x, dtype=float)
            noisy = [measure(counts.sum(axis) + rng.laplace(scale=2.0, size=2), (name,))
                     for axis, name in ((1, "a"), (0, "b"))]  # fmt: skip
            model = kind().estimate(domain, noisy, iters=25)
            return np.asarray(model.project(("a", "b")).datavector(), dtype=float)

        return estimate

    return build


_COUNTS: Final = ([[5, 3], [4, 2]], [[6, 3], [4, 2]])

_MBI: Final = (
    _mbi(name="MirrorDescent().estimate(noisy marginals)", pair=_COUNTS,
         build=_build_marginals_and_model("MirrorDescent")),
    _mbi(name="InteriorGradient().estimate(noisy marginals)",
         build=_build_marginals_and_model("InteriorGradient"), pair=_COUNTS),
)  # fmt: skip

CASES: tuple[Case, ...] = (*_TEXTBOOKS, *_JAX, *_OPACUS, *_MBI)
