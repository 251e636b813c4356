"""Transforms: those of `dpcore.sensitivity`, with no row outside after rounding to any dtype."""

from __future__ import annotations

import copy
import io
import warnings

import numpy as np
import pytest
from shared_extras import needs

from dpcore import Pair, sensitivity
from dpcore.errors import AssumptionWarning
from dpcore.pairs import NORMS, distance

torch = needs("torch")
from dpcore.torch import Clip, LaplaceNoise, MinMax, Normalise, layers  # noqa: E402

TOLERANCE = {
    torch.float64: 1e-12,
    torch.float32: 2.0**-22,
    torch.bfloat16: 2.0**-7,
    torch.float16: 2.0**-10,
}
DTYPES = list(TOLERANCE)
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


def rows_of(dim, dtype, device="cpu"):
    """Rows of many kinds, none of them constant unless it has one or two entries."""
    generator = torch.Generator().manual_seed(dim)
    plain = torch.randn(50, dim, generator=generator, dtype=torch.float64)
    spread = plain * torch.logspace(-6, 4, dim, dtype=torch.float64)
    equal = torch.full((1, dim), 0.1, dtype=torch.float64)
    equal[0, 0] = -0.1
    rows = torch.cat([plain, 100.0 * plain, spread, equal])
    if dtype == torch.float64:
        rows = torch.cat([rows, plain * 1e300, plain * 1e-310])
    return rows.to(device, dtype)


def norms(rows, norm):
    sizes = np.abs(rows)
    if norm == "linf":
        return sizes.max(-1)
    return sizes.sum(-1) if norm == "l1" else np.sqrt((sizes * sizes).sum(-1))


def close(found, expected, dtype, size=1.0):
    assert np.abs(found - expected).max() <= TOLERANCE[dtype] * size


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [1, 2, 3, 768, 5000])
@pytest.mark.parametrize("norm", NORMS)
def test_no_clipped_row_is_outside(norm, dim, dtype, device):
    x = rows_of(dim, dtype, device)
    for radius in (5.0, 0.3, 37.1):
        clip = Clip(norm, radius)
        found = clip(x)
        assert (found.dtype, found.device) == (x.dtype, x.device)
        assert torch.equal(clip(found), found)
        numbers = found.double().cpu().numpy()
        ball = clip.range(dim)
        assert all(ball.contains(row) for row in numbers)
        # In whatever order somebody adds.
        moved = (found != x).any(-1).cpu().numpy()
        with np.errstate(under="ignore"):
            assert (norms(numbers[moved][:, ::-1], norm) <= radius).all()
        wide = x.double().cpu().numpy()
        close(numbers, sensitivity.Clip(norm, radius)(wide), dtype, radius)
        inside = np.array([ball.contains(row) for row in wide])
        assert (numbers[inside] == wide[inside]).all()


def test_what_a_plain_clip_in_float32_leaves():
    x = torch.randn(2000, 256, generator=torch.Generator().manual_seed(1)) * 3.0
    plain = x * (5.0 / torch.linalg.vector_norm(x, dim=-1, keepdim=True)).clamp(max=1.0)
    assert norms(plain.double().numpy(), "l2").max() > 5.0
    assert norms(Clip("l2", 5.0)(x).double().numpy(), "l2").max() <= 5.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [1, 2, 3, 768, 5000])
@pytest.mark.parametrize("norm", NORMS)
def test_no_normalised_row_is_longer_than_1(norm, dim, dtype):
    x = rows_of(dim, dtype)
    x = x[(x != 0.0).any(-1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Normalise(norm)(x).double().numpy()
    lengths = norms(found, norm)
    assert lengths.max() <= 1.0
    assert lengths.min() >= 1.0 - 2.0 * TOLERANCE[dtype]
    close(found, sensitivity.Normalise(norm)(x.double().numpy()), dtype)
    if dtype == torch.float64:
        assert all(Normalise(norm).range(dim).contains(row) for row in found)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [2, 3, 768])
def test_min_max_is_exact_at_its_ends(dim, dtype):
    x = rows_of(dim, dtype)
    x = x[x.amin(-1) < x.amax(-1)]
    found = MinMax()(x).double().numpy()
    assert (found.min(-1) == 0.0).all()
    assert (found.max(-1) == 1.0).all()
    close(found, sensitivity.MinMax()(x.double().numpy()), dtype)


def test_constant_rows_become_zeros_and_are_counted():
    x = torch.tensor([[1.0, 2.0], [3.0, 3.0], [0.0, 0.0]], dtype=torch.bfloat16)
    scale = MinMax()
    with pytest.warns(AssumptionWarning, match="2 of 3 rows are constant") as caught:
        found = scale(x)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert found.tolist() == [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    with pytest.warns(AssumptionWarning):
        scale(x)
    assert scale.zeroed == 4
    length = Normalise("l1")
    with pytest.warns(AssumptionWarning, match=r"1 of 3 rows are zero \(norm 0\)"):
        found = length(x)
    assert found[2].tolist() == [0.0, 0.0]
    assert length.zeroed == 1
    assert Clip("l2", 1.0)(x)[2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dim", [2, 5])
def test_a_row_of_zeros_is_within_the_sensitivity(norm, dim):
    rng = np.random.default_rng(1)
    for kind in (MinMax(), *(Normalise(of) for of in NORMS)):
        domain = kind.range(dim)
        most = sensitivity.sensitivity(domain, norm).value
        ends = [
            sensitivity.sensitivity(domain, norm).pair.x,
            *(domain.draw(rng) for _ in range(50)),
        ]
        assert max(distance(Pair(np.zeros(dim), end), norm) for end in ends) <= most


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_flow(norm):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(4, 5, generator=generator, dtype=torch.float64) * 2.0
    x[3] *= 0.01
    x.requires_grad_()
    for kind in (Clip(norm, 1.5), Normalise(norm), MinMax()):
        assert torch.autograd.gradcheck(kind, (x,))


def test_gradients_are_finite_where_rows_are_zero_or_constant():
    for kind in (Clip("l2", 1.0), Normalise("l2"), Normalise("l1"), MinMax()):
        x = torch.tensor([[0.0, 0.0], [3.0, 4.0]], requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            kind(x)[:, 0].sum().backward()
        assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize("kind", [Clip("l1", 1.0), MinMax(), Normalise()], ids=repr)
def test_shapes(kind):
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))
    whole = kind(x)
    assert torch.equal(whole.view(6, 4), kind(x.view(6, 4)))
    assert torch.equal(whole[1, 2], kind(x[1, 2]))
    assert kind(x[:, :0]).shape == (2, 0, 4)
    assert torch.equal(whole.transpose(0, 1), kind(x.transpose(0, 1)))
    assert torch.equal(copy.deepcopy(kind).half()(x), whole)
    buffer = io.BytesIO()
    torch.save(kind.state_dict(), buffer)
    kind.load_state_dict(kind.state_dict())


@pytest.mark.parametrize("kind", [Clip("l1", 1.0), MinMax(), Normalise()], ids=repr)
def test_bad_input(kind):
    for x in ([[0.0, 1.0]], "text", torch.zeros(2, 2, dtype=torch.int32)):
        with pytest.raises(TypeError, match="x must be a tensor of float64, float32, bfloat16 or"):
            kind(x)
    for x in (torch.tensor(1.0), torch.zeros(3, 0)):
        with pytest.raises(ValueError, match=r"x must be of a shape \(..., dim\) with dim >= 1"):
            kind(x)
    x = torch.ones(9, 2)
    x[:, 0] = 0.0
    x[1, 1] = float("nan")
    with pytest.raises(ValueError, match=r"row 1 of x must be finite numbers, got \[0.0, nan\]"):
        kind(x)
    with pytest.raises(ValueError, match=r"row \(0, 1\) of x must be finite"):
        kind(x[None])
    with pytest.raises(ValueError, match=r"^x must be finite numbers"):
        kind(x[1])
    x[2:, 1] = float("inf")
    with pytest.raises(ValueError, match=r"rows 1, 2, 3, 4, 5, ... of x must be finite numbers"):
        kind(x)


def test_ranges_are_those_of_the_other_package():
    assert Clip("l1", 2.0).range(3) == sensitivity.Clip("l1", 2.0).range(3)
    assert MinMax().range(3) == sensitivity.MinMax().range(3)
    assert Normalise("linf").range(3) == sensitivity.Normalise("linf").range(3)
    assert [repr(kind) for kind in (Clip("l1", 2), MinMax(), Normalise())] == [
        "Clip(norm='l1', radius=2.0)",
        "MinMax()",
        "Normalise(norm='l2')",
    ]


def test_a_device_without_float64_is_served_by_the_cpu(monkeypatch):
    monkeypatch.setattr(layers, "float64_device", lambda device: torch.device("cpu", 0))
    for kind in (Clip("l1", 1.0), MinMax(), Normalise()):
        assert kind(torch.tensor([1.0, 5.0])).device == torch.device("cpu")


def test_clip_and_noise_train_together():
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 2), Clip("l1", 1.0), LaplaceNoise(0.5), torch.nn.Linear(2, 1)
    )
    model(torch.ones(4, 3)).sum().backward()
    assert all(torch.isfinite(one.grad).all() for one in model.parameters())
