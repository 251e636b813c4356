"""Transforms, which keep every row inside after rounding, and searches for pairs of modules."""

import copy
import io
import warnings
from functools import partial

import numpy as np
import pytest
from shared_encoders import WIDTH, hashed
from shared_extras import CUDA, needs

from dpcore import Pair, pairs, sensitivity
from dpcore.errors import AssumptionWarning
from dpcore.pairs import NORMS, distance

torch = needs("torch")
from dpcore.torch import Clip, MinMax, Normalise, PrivateEncoder, Project, layers  # noqa: E402

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
TOLERANCE = dict(zip(DTYPES, (1e-12, 2.0**-22, 2.0**-7, 2.0**-10), strict=True))
DEVICES = ["cpu", CUDA]


def rows_of(dim, dtype, device="cpu"):
    """Rows of many kinds, none of them constant unless it has one or two entries."""
    plain = torch.randn(50, dim, generator=torch.Generator().manual_seed(dim), dtype=torch.float64)
    spread = plain * torch.logspace(-6, 4, dim, dtype=torch.float64)
    equal = torch.full((1, dim), 0.1, dtype=torch.float64)
    equal[0, 0] = -0.1
    rows = torch.cat([plain, 100.0 * plain, spread, equal])
    if dtype == torch.float64:
        rows = torch.cat([rows, plain * 1e300, plain * 1e-310])
    return rows.to(device, dtype)


def norms(rows, norm):
    return np.linalg.norm(rows, {"l1": 1, "l2": 2, "linf": np.inf}[norm], axis=-1)


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
    assert (len(caught), caught[0].filename) == (1, __file__)
    assert found.tolist() == [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    with pytest.warns(AssumptionWarning):
        scale(x)
    assert scale.zeroed == 4
    length = Normalise("l1")
    with pytest.warns(AssumptionWarning, match=r"1 of 3 rows are zero \(norm 0\)"):
        found = length(x)
    assert (found[2].tolist(), length.zeroed) == ([0.0, 0.0], 1)
    assert Clip("l2", 1.0)(x)[2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dim", [2, 5])
def test_a_row_of_zeros_is_within_the_sensitivity(norm, dim):
    rng = np.random.default_rng(1)
    for kind in (MinMax(), *(Normalise(of) for of in NORMS)):
        domain = kind.range(dim)
        most = sensitivity.sensitivity(domain, norm)
        ends = [most.pair.x, *(domain.draw(rng) for _ in range(50))]
        assert max(distance(Pair(np.zeros(dim), end), norm) for end in ends) <= most.value


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_flow(norm):
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 2.0
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
    torch.save(kind.state_dict(), io.BytesIO())
    kind.load_state_dict(kind.state_dict())


def test_ranges_are_those_of_the_other_package():
    for kind, other, shown in (
        (Clip("l1", 2), sensitivity.Clip("l1", 2.0), "Clip(norm='l1', radius=2.0)"),
        (MinMax(), sensitivity.MinMax(), "MinMax()"),
        (Normalise(), sensitivity.Normalise("l2"), "Normalise(norm='l2')"),
    ):
        assert (kind.range(3), repr(kind)) == (other.range(3), shown)


def test_a_device_without_float64_is_served_by_the_cpu(monkeypatch):
    monkeypatch.setattr(layers, "float64_device", lambda device: torch.device("cpu", 0))
    for kind in (Clip("l1", 1.0), MinMax(), Normalise()):
        assert kind(torch.tensor([1.0, 5.0])).device == torch.device("cpu")


# Projections and centres from public rows: what they compute, refuse, save and say.


ROWS = np.random.default_rng(0).normal(size=(50, WIDTH)) * np.arange(1.0, WIDTH + 1)
PAIR = ("he has cancer", "he has the flu")


def private_of(**given):
    chain = [Project(ROWS, 3), Clip("l2", 1.0, center=[[0.1, 0.2, 0.3], [0.1, 0.1, 0.1]])]
    return PrivateEncoder(hashed, chain, epsilon=8.0, noise="l2_laplace", **given)


def test_directions_are_those_of_largest_variance():
    project = Project(torch.tensor(ROWS), 3)
    directions = project.directions.numpy()
    assert np.allclose(directions @ directions.T, np.eye(3))
    values, vectors = np.linalg.eigh(np.cov(ROWS.T))
    assert np.allclose(np.abs(directions @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-9)
    assert np.allclose(project.shares, values[::-1][:3] / values.sum())
    x = torch.tensor(ROWS[:4], dtype=torch.float32)
    expected = (x.double().numpy() - ROWS.mean(axis=0)) @ directions.T
    assert project(x).dtype == torch.float32
    assert np.allclose(project(x), expected, atol=1e-6)
    assert project.public_rows == 50


def test_random_directions_follow_from_the_seed():
    first, again = (Project("random", 3, width=WIDTH, rng=1) for _ in range(2))
    assert torch.equal(first.directions, again.directions)
    assert not torch.allclose(first.directions, Project("random", 3, width=WIDTH).directions)
    assert torch.allclose(first.directions @ first.directions.T, torch.eye(3).double())
    assert first.public_rows is None


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_no_row_around_a_centre_is_outside(norm, dtype):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(500, 40, generator=generator, dtype=torch.float64).to(dtype)
    centre = torch.linspace(-1.0, 1.0, 40, dtype=torch.float64)
    clip = Clip(norm, 3.0, center=centre)
    found, ball = clip(x).double().numpy(), clip.range(40)
    assert all(ball.contains(row) for row in found)
    assert torch.equal(clip(x), Clip(norm, 3.0)((x.double() - centre).to(dtype)))
    # Without a centre the same rows lie elsewhere.
    assert not torch.equal(clip(x), Clip(norm, 3.0)(x))


def test_buffers_are_moved_and_never_cast():
    chain = private_of().transform
    before = [one.clone() for one in chain.buffers()]
    assert len(before) == 4
    for one, other in zip(before, copy.deepcopy(chain).half().buffers(), strict=True):
        assert other.dtype == torch.float64
        assert torch.equal(one, other)
    again = torch.nn.Sequential(Project("random", 3, width=WIDTH), MinMax())
    again.load_state_dict({k: v for k, v in chain.state_dict().items() if k.startswith("0.")})
    assert again[0].public_rows == 50
    assert torch.equal(again[0].directions, before[0])


def test_what_it_was_fitted_on_is_said():
    private = private_of()
    assert (private.width, private.true_epsilon) == (3, pytest.approx(8.0))
    for shown in (str(private), repr(private)):
        assert "principal directions of 50 rows that must be public" in shown
        assert "centre of 2 rows that must be public" in shown
    assert private.public == ("Project on 50 rows", "Clip on 2 rows")
    assert "that these rows are public: Project on 50 rows, Clip on 2 rows" in str(private)
    nothing = [Project("random", 3, width=WIDTH, rng=1), Clip("l2", 1.0)]
    private = PrivateEncoder(hashed, nothing, epsilon=8.0)
    assert private.public == ()
    assert "random directions of seed 1" in str(private)
    assert "public" not in str(private)


def test_a_folder_keeps_projection_and_centre(tmp_path):
    needs("safetensors")
    for number, chain in enumerate(
        (
            [Project(ROWS, 3), Clip("l2", 1.0, center=ROWS[:, :3])],
            [Project("random", 2, width=WIDTH), MinMax()],
            Clip("l1", 1.0, center=ROWS),
        )
    ):
        private = PrivateEncoder(hashed, chain, epsilon=8.0)
        folder = private.save_pretrained(tmp_path / str(number))
        again = PrivateEncoder.from_pretrained(folder, encoder=hashed)
        assert repr(again) == repr(private)
        assert np.array_equal(again.encode(PAIR, rng=1), private.encode(PAIR, rng=1))
    needs("safetensors.torch").save_file({}, str(tmp_path / "0" / "transform.safetensors"))
    with pytest.raises(ValueError, match="must be the arrays of config"):
        PrivateEncoder.from_pretrained(tmp_path / "0", encoder=hashed)


# The sensitivity of modules: what `dpcore.sensitivity.refute` finds by their gradients.


@pytest.mark.parametrize("rows", [False, True])
def test_gradient_ascent_through_a_module(rows):
    class Encoder(torch.nn.Module):
        def forward(self, x):
            return x * (10.0 / torch.linalg.vector_norm(x, dim=-1, keepdim=True)).clamp(max=1.0)

    options = {"rng": 1, "rows": rows, "methods": ("random", "torch")}
    found = sensitivity.refute(Encoder(), 20.0, "l1", pairs.Box(-10, 10, 64), **options)
    assert (found.attained, found.found_by) == (pytest.approx(160.0, rel=1e-6), "gradient ascent")
    assert found.f.endswith("Encoder")


def test_a_float32_module_and_one_without_gradients():
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh())
    search = partial(sensitivity.refute, net, 0.1, "l2", pairs.Box(-1, 1, 6), rng=1, trials=4000)
    alone = search(methods=("random", "torch")).attained
    assert alone == pytest.approx(search().attained, rel=1e-3)
    assert alone > search(methods=("random",)).attained

    class Counting(torch.nn.Module):
        def forward(self, x):
            return (x > 0).sum()

    found = sensitivity.refute(Counting(), 1.0, "l1", pairs.Box(-1, 1, 5), rng=1, trials=2000)
    assert found.attained == 5.0


def test_a_module_in_train_mode_is_no_function():
    torch.manual_seed(1)
    net = torch.nn.Dropout(0.5).train()
    with pytest.raises(ValueError, match="without noise or memory"):
        sensitivity.refute(net, 1.0, "l1", pairs.Box(-1, 1, 8), rng=1, trials=400)
