# SPDX-License-Identifier: Apache-2.0
"""The PyTorch face: gradients against finite differences and autograd, the layer against its own formulas."""

import copy
import io

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import itspace  # noqa: E402
from itspace.torch import AlignLayer, bures_wasserstein_loss  # noqa: E402
from torch import nn  # noqa: E402


def randn(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def covariance_of(features):
    centred = features - features.mean(dim=0)
    return centred.T @ centred / (len(features) - 1)


def definition(Y, sigma):
    """||Y||^2 + tr Sigma - 2 ||Sigma^(1/2) Y||_* through an eigendecomposition, differentiable where Sigma > 0."""
    values, vectors = torch.linalg.eigh(sigma)
    root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
    return (Y**2).sum() + torch.trace(sigma) - 2 * torch.linalg.svdvals(root @ Y).sum()


# The loss.


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
        (ValueError, "finite|NaN", lambda Y, S: bures_wasserstein_loss(Y, randn(9, 4) * float("nan"))),
        (ValueError, "meta", lambda Y, S: bures_wasserstein_loss(Y.to("meta"), S)),
    ],
)
def test_misuse_is_named(error, words, call):
    with pytest.raises(error, match=words):
        call(randn(4, 2), covariance_of(randn(20, 4)))


# The layer.


def drifted(source, seed=9):
    d = source.shape[1]
    drift = torch.eye(d, dtype=source.dtype) + 0.4 * randn(d, d, seed=seed, dtype=source.dtype) / d**0.5
    return source @ (drift @ drift.T) + 2


def test_first_batch_sets_the_state():
    X = randn(100, 6, seed=1) * torch.tensor([3.0, 2, 1, 1, 1, 1]) + 5
    layer = AlignLayer(6, 2, dtype=torch.float64)
    assert layer(X) is X
    values, vectors = torch.linalg.eigh(covariance_of(X))
    leading = vectors[:, -2:] * values[-2:].sqrt()
    assert torch.allclose(layer.factor @ layer.factor.T, leading @ leading.T, atol=1e-10)
    assert torch.allclose(layer.mean, X.mean(dim=0))
    assert torch.isclose(layer.remainder, values[:-2].mean(), rtol=1e-9)
    assert layer.num_batches_tracked == 1


def test_a_batch_moves_the_state_by_one_step_of_the_formulas():
    X, Z = randn(100, 6, seed=1), drifted(randn(80, 6, seed=2))
    layer = AlignLayer(6, 2, momentum=0.25, dtype=torch.float64)
    layer(X)
    Y, mean, remainder = layer.factor.clone(), layer.mean.clone(), layer.remainder.clone()
    layer(Z)
    sigma = covariance_of(Z)
    W = sigma @ Y
    values, vectors = torch.linalg.eigh(Y.T @ W)
    B = W @ (vectors / values.sqrt()) @ vectors.T
    stepped = 0.75 * Y + 0.25 * B
    assert torch.allclose(layer.factor, stepped, atol=1e-9)
    assert torch.allclose(layer.mean, 0.75 * mean + 0.25 * Z.mean(dim=0))
    W = sigma @ stepped
    captured = (W.T @ W @ torch.linalg.inv(stepped.T @ W)).trace()
    assert torch.isclose(layer.remainder, 0.75 * remainder + 0.25 * (sigma.trace() - captured) / 4, rtol=1e-9)
    assert layer.certified
    assert definition(layer.factor, sigma) < definition(Y, sigma)


def test_momentum_none_is_the_plain_average():
    layer = AlignLayer(3, 1, momentum=None, dtype=torch.float64)
    batches = [randn(50, 3, seed=s) + s for s in range(5)]
    for batch in batches:
        layer(batch)
    assert torch.allclose(layer.mean, torch.stack([b.mean(dim=0) for b in batches]).mean(dim=0))


@pytest.mark.parametrize("kind", ["monge", "whiten"])
def test_eval_transports_by_the_dense_map_of_the_two_models(kind):
    source = randn(300, 6, seed=1) * torch.tensor([3.0, 2, 1, 1, 1, 1])
    layer = AlignLayer(6, 3, map=kind, dtype=torch.float64)
    layer(source)
    layer.keep_reference()
    for seed in range(5):
        layer(drifted(randn(300, 6, seed=seed)))
    layer.eval()

    def power(a, exponent):
        values, vectors = torch.linalg.eigh(a)
        return (vectors * values**exponent) @ vectors.T

    identity = torch.eye(6, dtype=torch.float64)
    running = layer.factor @ layer.factor.T + layer.remainder * identity
    reference = layer.reference_factor @ layer.reference_factor.T + layer.reference_remainder * identity
    root, inverse_root = power(running, 0.5), power(running, -0.5)
    if kind == "monge":
        A = inverse_root @ power(root @ reference @ root, 0.5) @ inverse_root
    else:
        A = power(reference, 0.5) @ inverse_root
    X = randn(7, 6, seed=30)
    assert torch.allclose(layer(X), layer.reference_mean + (X - layer.mean) @ A.T, atol=1e-9)


def test_following_a_target_brings_it_into_the_reference_frame():
    source = randn(400, 5, seed=1) @ randn(5, 5, seed=2)
    target = drifted(source)
    layer = AlignLayer(5, 5, dtype=torch.float64)
    layer.set_reference(source)
    with torch.no_grad():
        for _ in range(200):
            layer(target)
        moved = layer.eval()(target)
    assert torch.allclose(moved.mean(dim=0), source.mean(dim=0), atol=1e-6)
    assert torch.allclose(covariance_of(moved), covariance_of(source), atol=1e-3)


def test_eval_changes_nothing_and_needs_no_batch_size():
    layer = AlignLayer(4, 2, dtype=torch.float64)
    layer(randn(50, 4))
    layer.keep_reference()
    layer(drifted(randn(50, 4)))
    layer.eval()
    before = {k: v.clone() for k, v in layer.state_dict().items()}
    one, stacked = randn(1, 4, seed=5), randn(2, 3, 4, seed=6)
    layer(one)
    assert torch.allclose(layer(stacked)[1, 2], layer(stacked[1, 2]))
    assert all(torch.equal(before[k], v) for k, v in layer.state_dict().items())


@pytest.mark.parametrize("kind", ["monge", "whiten"])
def test_gradients_flow_through_the_map(kind):
    layer = AlignLayer(4, 2, map=kind, dtype=torch.float64)
    layer(randn(50, 4))
    layer.keep_reference()
    layer(drifted(randn(50, 4)))
    layer.eval()
    assert torch.autograd.gradcheck(layer, (randn(3, 4, seed=5).requires_grad_(),))
    assert not list(layer.parameters())


def test_state_dict_deepcopy_and_save():
    layer = AlignLayer(4, 2, dtype=torch.float64)
    layer(randn(50, 4))
    layer.keep_reference()
    layer(drifted(randn(50, 4)))
    layer.eval()
    X = randn(5, 4, seed=5)
    expected = layer(X)
    loaded = AlignLayer(4, 2, dtype=torch.float64).eval()
    loaded.load_state_dict(layer.state_dict())
    assert torch.equal(loaded(X), expected)
    copied = copy.deepcopy(layer)
    assert torch.equal(copied(X), expected)
    copied.train()(drifted(X.repeat(9, 1) + randn(45, 4)))
    assert torch.equal(layer(X), expected)  # the copy has its own state
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    again = AlignLayer(4, 2, dtype=torch.float64).eval()
    again.load_state_dict(torch.load(file))  # whatever torch's default of weights_only
    assert torch.equal(again(X), expected)
    whole = io.BytesIO()
    torch.save(layer, whole)
    whole.seek(0)
    assert torch.equal(torch.load(whole, weights_only=False)(X), expected)  # code, not weights alone
    # A map in use is made again when another state is loaded.
    other = AlignLayer(4, 2, dtype=torch.float64)
    other(randn(50, 4, seed=20))
    other.keep_reference()
    assert torch.allclose(other(X.repeat(9, 1) + randn(45, 4))[:0], X[:0])
    other.eval().load_state_dict(layer.state_dict())
    assert torch.equal(other(X), expected)
    assert layer.float()(X.float()).dtype == torch.float32


def test_inside_a_network():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 8), AlignLayer(8, 3), nn.Linear(8, 2))
    X, y = randn(64, 6, dtype=torch.float32), torch.arange(64) % 2
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(X), y).backward()
        optimizer.step()
    assert net[1].num_batches_tracked == 5
    net[1].keep_reference()
    loss = nn.functional.cross_entropy(net(X), y)
    loss.backward()
    assert torch.isfinite(loss) and all(torch.isfinite(p.grad).all() for p in net.parameters())
    assert "AlignLayer(dim=8, rank=3" in repr(net)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("rank is 9", lambda layer: AlignLayer(4, 9)),
        ("dim is 0", lambda layer: AlignLayer(0, 1)),
        ("momentum is 0", lambda layer: AlignLayer(4, 2, momentum=0.0)),
        ("'coral'", lambda layer: AlignLayer(4, 2, map="coral")),
        ("floor is 0", lambda layer: AlignLayer(4, 2, floor=0.0)),
        ("last dimension must be dim = 4", lambda layer: layer(randn(3, 5))),
        ("1 sample|at least two|2 samples|samples", lambda layer: layer(randn(1, 4))),
        ("NaN", lambda layer: layer(randn(9, 4) * float("nan"))),
        ("no batch", lambda layer: layer.keep_reference()),
        ("no batch", lambda layer: (layer.set_reference(randn(9, 4)), layer.eval()(randn(3, 4)))),
    ],
)
def test_layer_misuse_is_named(words, call):
    with pytest.raises(ValueError, match=words):
        call(AlignLayer(4, 2, dtype=torch.float64))


def test_a_bad_batch_leaves_the_state_as_it_is():
    layer = AlignLayer(4, 2, dtype=torch.float64)
    layer(randn(50, 4))
    before = {k: v.clone() for k, v in layer.state_dict().items()}
    for bad in (randn(9, 4) * float("inf"), randn(1, 4)):
        with pytest.raises(ValueError):
            layer(bad)
    assert all(torch.equal(before[k], v) for k, v in layer.state_dict().items())


# The functions of NumPy's side, given tensors.


def test_the_callback_and_the_result_are_in_the_callers_library():
    sigma, seen = covariance_of(randn(30, 5)), []
    result = itspace.align(sigma, rank=2, steps=2, callback=lambda step, factor: seen.append(factor))
    assert all(isinstance(factor, torch.Tensor) for factor in seen) and len(seen) == 3
    assert torch.equal(seen[-1], result.factor)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (r"X is a tensor of dtype torch.bfloat16.*X\.float\(\)", lambda X: itspace.Target.from_features(X.bfloat16())),
        (r"X is a tensor of layout torch.sparse_coo.*to_dense", lambda X: itspace.Target.from_features(X.to_sparse())),
        (r"Y is torch.bfloat16.*\.float\(\)", lambda X: bures_wasserstein_loss(X.bfloat16(), X @ X.T)),
        (r"Y is of layout torch.sparse_coo.*to_dense", lambda X: bures_wasserstein_loss(X.to_sparse(), X @ X.T)),
    ],
)
def test_tensors_that_cannot_cross_are_named(words, call):
    with pytest.raises(TypeError, match=words):
        call(randn(6, 4))


def test_the_loss_calls_a_factor_a_factor():
    with pytest.raises(ValueError, match="the factor has 3 rows"):
        bures_wasserstein_loss(randn(3, 1), itspace.Target.from_factor(randn(5, 2)))


def test_the_gradient_at_zero_is_zero():
    Y = torch.zeros(5, 2, dtype=torch.float64, requires_grad=True)
    bures_wasserstein_loss(Y, covariance_of(randn(30, 5))).backward()
    assert torch.equal(Y.grad, torch.zeros_like(Y))


def test_a_target_of_tensors_pickles_into_tensors():
    target = itspace.Target.from_features(randn(30, 5))
    again = copy.deepcopy(target)
    assert isinstance(itspace.align(again, rank=2).factor, torch.Tensor)
    assert torch.equal(again.apply(randn(5, 2)), target.apply(randn(5, 2)))


def test_the_loss_takes_what_every_function_takes():
    sigma = covariance_of(randn(30, 5))
    sigma[0, 1] += 1e-9
    symmetric = (sigma + sigma.T) / 2
    Y = randn(5, 2)
    assert bures_wasserstein_loss(Y, sigma) == bures_wasserstein_loss(Y, symmetric)
