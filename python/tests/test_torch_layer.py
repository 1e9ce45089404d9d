# SPDX-License-Identifier: Apache-2.0
"""The layer of the PyTorch face against its own formulas."""

import copy
import io
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import itspace  # noqa: E402
from itspace.torch import AlignLayer  # noqa: E402
from tensors import covariance_of, definition, randn  # noqa: E402
from torch import nn  # noqa: E402


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
    Y = layer.factor.clone()
    layer(Z)
    # The covariance of both batches, the older one with three quarters of its weight; one full step toward it.
    weights = torch.cat([torch.full((100,), 0.75), torch.ones(80)]).double()
    sigma = torch.cov(torch.cat([X, Z]).T, aweights=weights)
    W = sigma @ Y
    values, vectors = torch.linalg.eigh(Y.T @ W)
    stepped = W @ (vectors / values.sqrt()) @ vectors.T
    assert torch.allclose(layer.factor, stepped, atol=1e-9)
    assert torch.allclose(layer.mean, (weights[:, None] * torch.cat([X, Z])).sum(dim=0) / weights.sum())
    W = sigma @ stepped
    captured = (W.T @ W @ torch.linalg.inv(stepped.T @ W)).trace()
    assert torch.isclose(layer.remainder, (sigma.trace() - captured) / 4, rtol=1e-9)
    assert layer.certified
    assert definition(layer.factor, sigma) < definition(Y, sigma)
    assert torch.isclose(layer.samples, weights.sum() ** 2 / (weights**2).sum())


def test_the_layer_is_an_online_aligner():
    batches = [drifted(randn(60, 6, seed=seed)) for seed in range(5)]
    layer = AlignLayer(6, 2, momentum=0.1, dtype=torch.float64)
    for batch in batches:
        layer(batch)
    start = itspace.start_from(itspace.Target.from_features(np.from_dlpack(batches[0])), 2)
    aligner = itspace.OnlineAligner(2, steps=1, half_life=-1 / math.log2(0.9), start=start)
    for batch in batches:
        aligner.observe(np.from_dlpack(batch))
    assert torch.equal(layer.factor, torch.from_dlpack(aligner.factor))
    assert torch.equal(layer.mean, torch.from_dlpack(aligner.mean))
    forgets_all = AlignLayer(6, 2, momentum=1.0, dtype=torch.float64)
    for batch in batches:
        forgets_all(batch)
    assert torch.allclose(forgets_all.mean, batches[-1].mean(dim=0))


def test_a_loaded_layer_follows_on_with_the_same_bits():
    batches = [drifted(randn(60, 6, seed=seed)) for seed in range(6)]
    straight, halted = AlignLayer(6, 2, dtype=torch.float64), AlignLayer(6, 2, dtype=torch.float64)
    for batch in batches[:3]:
        straight(batch)
        halted(batch)
    loaded = AlignLayer(6, 2, dtype=torch.float64)
    loaded.load_state_dict(halted.state_dict())
    copied = copy.deepcopy(halted)
    for batch in batches[3:]:
        for layer in (straight, loaded, copied):
            layer(batch)
    for layer in (loaded, copied):
        assert torch.equal(layer.factor, straight.factor) and torch.equal(layer.mean, straight.mean)
        assert layer.num_batches_tracked == 6


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
    # A batch that comes again counts as new samples: the stream divides by their number, the reference by n - 1.
    counted = (399 / 400) / (1 - 1 / float(layer.samples))
    assert torch.allclose(counted * covariance_of(moved), covariance_of(source), atol=1e-3)


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
        (r"1 row\(s\) in the input; .*at least 2", lambda layer: layer(randn(1, 4))),
        (r"1 row\(s\) in features; .*at least 2", lambda layer: layer.set_reference(randn(1, 4))),
        ("features has a value that is NaN", lambda layer: layer.set_reference(randn(9, 4) * float("nan"))),
        ("NaN", lambda layer: layer(randn(9, 4) * float("nan"))),
        ("input is on cpu and the state of the layer on meta", lambda layer: layer.to("meta")(randn(9, 4))),
        ("no batch", lambda layer: layer.keep_reference()),
        ("no batch", lambda layer: (layer.set_reference(randn(9, 4)), layer.eval()(randn(3, 4)))),
    ],
)
def test_layer_misuse_is_named(words, call):
    with pytest.raises(ValueError, match=words):
        call(AlignLayer(4, 2, dtype=torch.float64))


def test_a_replica_of_data_parallel_moves_samples_and_follows_none():
    """Replicas hold the buffers of their device and the one stream of the layer, each in a thread of its own."""
    layer, X = AlignLayer(4, 2, dtype=torch.float64), randn(50, 4)
    layer(X)
    layer.keep_reference()
    layer(2 * X + 1)
    before = layer.eval()(X)
    replica = layer._replicate_for_data_parallel()
    assert torch.equal(replica(X), before)
    with pytest.raises(ValueError, match=r"replica of nn\.DataParallel.*eval\(\).*DistributedDataParallel"):
        replica.train()(X)
    assert torch.equal(layer(X), before)


def test_a_bad_batch_leaves_the_state_as_it_is():
    layer = AlignLayer(4, 2, dtype=torch.float64)
    layer(randn(50, 4))
    before = {k: v.clone() for k, v in layer.state_dict().items()}
    for bad in (randn(9, 4) * float("inf"), randn(1, 4)):
        with pytest.raises(ValueError):
            layer(bad)
    assert all(torch.equal(before[k], v) for k, v in layer.state_dict().items())


# The gate: the layers above are asked whether the map helps.


def two_domains():
    """A layer that knows both, labelled samples of both, and a linear head of the source."""
    centres = 4 * randn(4, 6, seed=3)
    labels = torch.arange(800) % 4
    source = centres[labels] + randn(800, 6, seed=4)
    target = 3 * (centres[labels] + randn(800, 6, seed=5)) + 20
    layer = AlignLayer(6, 5, momentum=None, dtype=torch.float64)
    layer(source)
    layer.keep_reference()
    layer.reset_running_stats()
    layer(target)
    return layer.eval(), source, target, labels, lambda x: 2 * x @ centres.T - (centres**2).sum(dim=1)


def test_gate_opens_where_the_head_collapses_and_closes_where_it_does_not():
    layer, source, target, labels, head = two_domains()
    report = layer.gate(target, head)
    assert report["decision"] == "monge" and layer.is_open
    assert (head(layer(target)).argmax(dim=1) == labels).double().mean() > 0.9
    # Samples that the head judges well already: whatever the map does, it stays out.
    report = layer.gate(source, head)
    assert report["decision"] == "none" and report["sentence"].startswith("left alone")
    assert not layer.is_open and layer(source) is source
    layer.keep_reference()
    assert layer.is_open


def test_gate_reads_logits_probabilities_and_labels():
    layer, _, target, _, head = two_domains()
    logits = layer.gate(target, head)
    assert logits["candidates"]["none"]["information"] is not None
    probabilities = layer.gate(target, lambda x: head(x).softmax(dim=1))
    assert probabilities["candidates"] == logits["candidates"]
    labels = layer.gate(target, lambda x: head(x).argmax(dim=1))
    assert labels["decision"] == "monge" and labels["candidates"]["none"]["information"] is None


def test_the_gate_is_part_of_the_state():
    layer, source, _, _, head = two_domains()
    layer.gate(source, head)
    other = AlignLayer(6, 5, dtype=torch.float64)
    other.load_state_dict(layer.state_dict())
    assert not other.is_open and other.eval()(source) is source


def test_gate_needs_a_map():
    layer = AlignLayer(6, 2, dtype=torch.float64)
    with pytest.raises(ValueError, match="no map to decide about"):
        layer.gate(randn(10, 6, seed=1), lambda x: x)
