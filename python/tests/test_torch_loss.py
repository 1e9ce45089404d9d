# SPDX-License-Identifier: Apache-2.0
"""The loss of the PyTorch face: values and gradients against the definition, finite differences and autograd."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import itspace  # noqa: E402
from itspace.torch import bures_wasserstein_loss  # noqa: E402
from tensors import covariance_of, definition, randn  # noqa: E402
from torch import nn  # noqa: E402


@pytest.mark.parametrize(("d", "r"), [(1, 1), (3, 1), (7, 3), (6, 6)])
def test_loss_and_gradient_are_those_of_the_definition(d, r):
    Y = randn(d, r, seed=1).requires_grad_()
    sigma = covariance_of(randn(4 * d + 8, d, seed=2))
    loss = bures_wasserstein_loss(Y, sigma)
    loss.backward()
    other = Y.detach().clone().requires_grad_()
    expected = definition(other, sigma)
    expected.backward()
    assert torch.isclose(loss, expected, rtol=1e-10)
    assert torch.allclose(Y.grad, other.grad, rtol=1e-8, atol=1e-10)


def test_gradcheck_of_the_factor():
    Y = randn(6, 3, seed=1).requires_grad_()
    sigma = covariance_of(randn(40, 6, seed=2))
    assert torch.autograd.gradcheck(lambda y: bures_wasserstein_loss(y, sigma), (Y,))
    target = itspace.Target.from_covariance(sigma)
    assert torch.autograd.gradcheck(lambda y: 3 * bures_wasserstein_loss(y, target) ** 2, (Y,))


@pytest.mark.parametrize("n", [40, 5])
def test_gradcheck_of_features(n):
    Y = randn(6, 3, seed=1).requires_grad_()
    X = (randn(n, 6, seed=2) + 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda y, x: bures_wasserstein_loss(y, x, target_as="features"), (Y, X))


def test_gradient_of_features_is_that_of_the_definition():
    Y, X = randn(5, 2, seed=1), (randn(30, 5, seed=2) + 1).requires_grad_()
    bures_wasserstein_loss(Y, X).backward()
    other = X.detach().clone().requires_grad_()
    definition(Y, covariance_of(other)).backward()
    assert torch.allclose(X.grad, other.grad, rtol=1e-8, atol=1e-10)


def test_singular_covariance_has_a_finite_gradient_where_a_root_gives_nan():
    Y = randn(5, 2, seed=1)
    sigma = torch.diag(torch.tensor([4.0, 1.0, 0.0, 0.0, 0.0], dtype=torch.float64)).requires_grad_()
    definition(Y, sigma).backward()
    assert not torch.isfinite(sigma.grad).all()  # the derivative of the root at 0, and equal eigenvalues

    Y.requires_grad_()
    X = torch.zeros(4, 5, dtype=torch.float64)
    X[:2, 0], X[2:, 0] = 3**0.5, -(3**0.5)
    X[::2, 1], X[1::2, 1] = 0.75**0.5, -(0.75**0.5)
    assert torch.allclose(covariance_of(X), sigma.detach())
    X.requires_grad_()
    loss = bures_wasserstein_loss(Y, X)
    loss.backward()
    # With Sigma = T T' of rank 2: F = ||Y||^2 + ||T||^2 - 2 ||T'Y||_*, and its gradient is 2 (Y - T polar(T'Y)).
    T, y = torch.diag(torch.tensor([2.0, 1, 0, 0, 0], dtype=torch.float64))[:, :2], Y.detach()
    u, s, vh = torch.linalg.svd(T.T @ y, full_matrices=False)
    assert torch.isclose(loss, (y**2).sum() + 5 - 2 * s.sum())
    assert torch.allclose(Y.grad, 2 * (y - T @ u @ vh), atol=1e-9)
    # dF/dSigma = I - Y G^(-1/2) Y' with G = Y' Sigma Y, and Sigma = Xc' Xc/(n - 1).
    inner = torch.eye(5, dtype=torch.float64) - y @ vh.T @ torch.diag(1 / s) @ vh @ y.T
    assert torch.allclose(X.grad, 2 / 3 * X.detach() @ inner, atol=1e-9)


@pytest.mark.parametrize("case", ["zero sigma", "zero Y", "unseen column", "few samples", "one feature row repeated"])
def test_degenerate_inputs_stay_finite(case):
    Y, X = randn(5, 3, seed=1), randn(20, 5, seed=2)
    if case == "zero Y":
        Y.zero_()
    elif case == "unseen column":
        X[:, 2:] = 0
        Y[:2, 2] = 0
    elif case == "few samples":
        X = X[:2]
    elif case == "one feature row repeated":
        X = X[:1].repeat(4, 1)
    elif case == "zero sigma":
        X = X * 0
    Y.requires_grad_(), X.requires_grad_()
    loss = bures_wasserstein_loss(Y, X, target_as="features")
    loss.backward()
    assert torch.isfinite(loss) and loss >= 0
    assert torch.isfinite(Y.grad).all() and torch.isfinite(X.grad).all()


def test_float32_keeps_its_dtype_and_agrees_with_float64():
    Y, X = randn(8, 3, seed=1), randn(50, 8, seed=2)
    Y32, X32 = Y.float().requires_grad_(), X.float().requires_grad_()
    loss = bures_wasserstein_loss(Y32, X32)
    loss.backward()
    assert loss.dtype == torch.float32 and Y32.grad.dtype == torch.float32 and X32.grad.dtype == torch.float32
    Y.requires_grad_(), X.requires_grad_()
    exact = bures_wasserstein_loss(Y, X)
    exact.backward()
    assert torch.isclose(loss.double(), exact, rtol=1e-5)
    assert torch.allclose(Y32.grad.double(), Y.grad, atol=1e-4) and torch.allclose(X32.grad.double(), X.grad, atol=1e-5)


def test_non_contiguous_tensors_are_accepted():
    Y, X = randn(3, 8, seed=1).T, randn(8, 50, seed=2).T
    assert not Y.is_contiguous()
    assert torch.isclose(bures_wasserstein_loss(Y, X), bures_wasserstein_loss(Y.contiguous(), X.contiguous()))


def test_tensors_cross_without_a_copy():
    sigma = covariance_of(randn(30, 6, seed=2))
    target = itspace.Target.from_covariance(sigma)
    Y = randn(6, 2, seed=1)
    before = float(bures_wasserstein_loss(Y, target))
    sigma.mul_(4)  # seen through the target, which holds the tensor's own memory
    after = itspace.Target.from_covariance(sigma)
    product = target.apply(Y)
    assert torch.allclose(torch.as_tensor(product), sigma @ Y)
    assert before != float(bures_wasserstein_loss(Y, after))


def test_the_loss_reads_the_tensors_own_memory(monkeypatch):
    seen = []

    def record(function):
        def recorded(*arrays):
            seen.extend(array.__array_interface__["data"][0] for array in arrays)
            return function(*arrays)

        return recorded

    for name in ("objective_and_gradient", "objective_and_features_gradient"):
        monkeypatch.setattr(itspace, name, record(getattr(itspace, name)))
    monkeypatch.setattr(itspace.Target, "from_covariance", lambda sigma: sigma)
    Y, X = randn(6, 2, seed=1), randn(30, 6, seed=2).requires_grad_()
    sigma = covariance_of(X.detach())
    bures_wasserstein_loss(Y, X)
    bures_wasserstein_loss(Y, sigma)
    assert seen == [tensor.data_ptr() for tensor in (Y, X, Y, sigma)]


def test_gradient_descent_reaches_the_floor():
    sigma = covariance_of(randn(60, 8, seed=2))
    Y = randn(8, 3, seed=1).requires_grad_()
    optimizer = torch.optim.SGD([Y], lr=0.5)
    for _ in range(300):
        optimizer.zero_grad()
        loss = bures_wasserstein_loss(Y, sigma)
        loss.backward()
        optimizer.step()
    floor = torch.linalg.eigvalsh(sigma)[:-3].sum()
    assert torch.isclose(loss, floor, rtol=1e-6)


def test_features_are_trained_through_the_loss():
    """A linear layer learns to give its outputs a wanted covariance, as a covariance-matching regulariser does."""
    torch.manual_seed(0)
    layer, inputs = nn.Linear(6, 6).double(), randn(200, 6, seed=3)
    wanted = randn(6, 2, seed=4)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    losses = []
    for _ in range(200):
        optimizer.zero_grad()
        loss = bures_wasserstein_loss(wanted, layer(inputs))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 1e-2 * losses[0]


def test_no_grad_and_double_backward():
    Y, sigma = randn(4, 2, seed=1).requires_grad_(), covariance_of(randn(20, 4))
    with torch.no_grad():
        assert not bures_wasserstein_loss(Y, sigma).requires_grad
    (gradient,) = torch.autograd.grad(bures_wasserstein_loss(Y, sigma) ** 2, Y, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (TypeError, "must be a torch.Tensor", lambda Y, S: bures_wasserstein_loss(np.ones((4, 2)), S)),
        (TypeError, "float32 or float64", lambda Y, S: bures_wasserstein_loss(Y.half(), S.half())),
        (TypeError, "convert one", lambda Y, S: bures_wasserstein_loss(Y.float(), S)),
        (ValueError, "two dimensions", lambda Y, S: bures_wasserstein_loss(Y[:, 0], S)),
        (ValueError, r"the target is not symmetric: entries .*'features'", lambda Y, S: bures_wasserstein_loss(Y, randn(4, 4))),
        (ValueError, "5 x 4; .* square", lambda Y, S: bures_wasserstein_loss(Y, randn(5, 4), target_as="covariance")),
        (ValueError, "features only", lambda Y, S: bures_wasserstein_loss(Y, S.clone().requires_grad_())),
        (ValueError, "'rows'", lambda Y, S: bures_wasserstein_loss(Y, S, target_as="rows")),
        (ValueError, "dimension|rows", lambda Y, S: bures_wasserstein_loss(Y, randn(9, 5))),
        (ValueError, "finite|NaN", lambda Y, S: bures_wasserstein_loss(Y, S * float("nan"))),
        (ValueError, "finite|NaN", lambda Y, S: bures_wasserstein_loss(Y * float("inf"), S)),
        (ValueError, r"the target\[0, 0\] is nan", lambda Y, S: bures_wasserstein_loss(Y, randn(9, 4) * float("nan"))),
        (ValueError, r"1 row\(s\) in the target; .*at least 2", lambda Y, S: bures_wasserstein_loss(Y, randn(1, 4))),
        (ValueError, "meta", lambda Y, S: bures_wasserstein_loss(Y.to("meta"), S)),
    ],
)
def test_misuse_is_named(error, words, call):
    with pytest.raises(error, match=words):
        call(randn(4, 2), covariance_of(randn(20, 4)))


def test_the_loss_calls_a_factor_a_factor():
    with pytest.raises(ValueError, match="the factor has 3 rows"):
        bures_wasserstein_loss(randn(3, 1), itspace.Target.from_factor(randn(5, 2)))


def test_the_gradient_at_zero_is_zero():
    Y = torch.zeros(5, 2, dtype=torch.float64, requires_grad=True)
    bures_wasserstein_loss(Y, covariance_of(randn(30, 5))).backward()
    assert torch.equal(Y.grad, torch.zeros_like(Y))


def test_the_loss_takes_what_every_function_takes():
    sigma = covariance_of(randn(30, 5))
    sigma[0, 1] += 1e-9
    symmetric = (sigma + sigma.T) / 2
    Y = randn(5, 2)
    assert bures_wasserstein_loss(Y, sigma) == bures_wasserstein_loss(Y, symmetric)
