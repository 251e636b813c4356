"""Projections and centres from public rows: what they compute, refuse, save and say."""

import copy

import numpy as np
import pytest
from shared_encoders import WIDTH, hashed
from shared_extras import needs

import dpcore

torch = needs("torch")

from dpcore.torch import Clip, MinMax, PrivateEncoder, Project  # noqa: E402

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
    moved = (x.double() - centre).to(dtype)
    assert torch.equal(clip(x), Clip(norm, 3.0)(moved))
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
    with pytest.raises(TypeError, match="the state of Project must be a tensor of 2 int64"):
        again[0].set_extra_state(None)
    with pytest.raises(ValueError, match="the state of Project must be a tensor of 2 int64"):
        again[0].set_extra_state(torch.zeros(3))


def test_an_audit_knows_the_exact_loss_of_projected_texts():
    private = private_of()
    assert private.width == 3
    assert private.true_epsilon == pytest.approx(8.0)
    clean = private.clean(PAIR).double().numpy()
    report = dpcore.audit(private, PAIR, trials=20_000, rng=1)
    loss = np.linalg.norm(clean[0] - clean[1]) / 0.25
    assert report.declared_loss == pytest.approx(loss, rel=1e-6)
    assert 0.0 < report.epsilon_lower <= loss <= 8.0
    assert not report.refuted


def test_what_it_was_fitted_on_is_said():
    private = private_of()
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
