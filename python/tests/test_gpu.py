# SPDX-License-Identifier: Apache-2.0
"""On a GPU: the host's numbers to rounding, in tensors that stay there. Skipped where there is none."""

import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
cuda = pytest.importorskip("itspace._cuda", reason="itspace was built without CUDA", exc_type=ImportError)
if cuda.why_no_device():
    pytest.skip(cuda.why_no_device(), allow_module_level=True)
if not torch.cuda.is_available():
    pytest.skip("this PyTorch sees no GPU", allow_module_level=True)

import itspace  # noqa: E402
from itspace.torch import AlignLayer, bures_wasserstein_loss  # noqa: E402
from tensors import covariance_of, randn  # noqa: E402

DTYPES = [torch.float32, torch.float64]


def limit(dtype):
    """Of a scaled residual: some hundreds of roundings."""
    return 500 * torch.finfo(dtype).eps


def apart(there, here):
    return float((there.cpu().double() - here.double()).norm() / here.double().norm())


def data(dtype, n=300, d=40):
    return (randn(n, d) * torch.linspace(3, 0.1, d, dtype=torch.float64) + 5).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["covariance", "features", "factor", "low_rank"])
# A third Ritz step on the low-rank target finds nothing but rounding, and whether it says so is rounding's own.
@pytest.mark.parametrize("options", [{"steps": 4}, {"solver": "ritz", "steps": 2}, {"steps": 3, "alpha": "line-search"}])
def test_runs_agree_with_the_hosts(dtype, kind, options):
    X, start = data(dtype), randn(40, 6, seed=1).to(dtype)

    def target(X):
        if kind == "covariance":
            return itspace.Target.from_covariance((X.T @ X) / len(X))
        if kind == "features":
            return itspace.Target.from_features(X)
        if kind == "factor":
            return itspace.Target.from_factor(X.T.contiguous())
        return itspace.Target.low_rank_plus_diagonal(X.T[:, :10], np.linspace(2, 1, 10), 0.3)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", itspace.ResolutionWarning)
        here = itspace.align(target(X), start, **options)
        there = itspace.align(target(X.cuda()), start.cuda(), **options)
    assert there.factor.device.type == "cuda" and there.factor.dtype == dtype
    assert there.status == here.status and there.certified
    # Where all steps are one launch, directions are known to eps times the condition number of Y'(Sigma Y). The best point on
    # a line is known to the root of rounding, since the objective is flat there, and the steps that follow begin elsewhere.
    tolerance = limit(dtype) * float(torch.linalg.cond((start.T @ target(X).apply(start)).double()))
    if "alpha" in options:
        tolerance = 10 * limit(dtype) ** 0.5
    assert apart(there.factor @ there.factor.T, here.factor @ here.factor.T) < tolerance
    size = here.trace["target_trace"]
    assert np.abs(there.trace["objective"] - here.trace["objective"]).max() < (tolerance if "alpha" in options else limit(dtype)) * size
    # The same bits again.
    again = itspace.align(target(X.cuda()), start.cuda(), **options)
    assert torch.equal(again.factor, there.factor)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_indefinite_covariance_is_refused(dtype):
    sigma = covariance_of(data(torch.float64)).to(dtype).cuda()
    sigma = (sigma + sigma.T) / 2
    itspace.Target.from_covariance(sigma)
    itspace.Target.from_covariance(torch.zeros(5, 5, dtype=dtype, device="cuda"))
    indefinite = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=dtype, device="cuda")
    with pytest.raises(ValueError, match="indefinite"):
        itspace.Target.from_covariance(indefinite)
    lopsided = sigma.clone()
    lopsided[0, 1] += 10
    with pytest.raises(ValueError, match="not symmetric"):
        itspace.Target.from_covariance(lopsided)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, {"alpha": "line-search"}])
def test_a_batch_agrees_with_the_hosts(dtype, options):
    targets = torch.stack([covariance_of(data(torch.float64, n=60 + i, d=24)) for i in range(9)]).to(dtype)
    starts = randn(9, 24, 5, seed=1).to(dtype)
    targets[4, 2, 3] = float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = itspace.align_batch(targets, starts, steps=3, **options)
        there = itspace.align_batch(targets.cuda(), starts.cuda(), steps=3, **options)
        again = itspace.align_batch(targets.cuda(), starts.cuda(), steps=3, **options)
        from_random = itspace.align_batch(targets.cuda(), rank=5), itspace.align_batch(targets, rank=5)
    assert there.factors.device.type == "cuda" and there.factors.dtype == dtype and there.factors.shape == (9, 24, 5)
    assert there.status.tolist() == here.status.tolist() and there.status[4] == "not_finite"
    assert there.certified.tolist() == here.certified.tolist() and there.reasons == here.reasons
    for on_gpu, on_host in ((there, here), from_random):
        for i in (0, 1, 2, 3, 5, 6, 7, 8):
            Y, Z = on_gpu.factors[i], on_host.factors[i]
            assert apart(Y @ Y.T, Z @ Z.T) < limit(dtype)
            size = float(targets[i].trace())
            assert np.abs(on_gpu.objectives[i] - on_host.objectives[i]).max() < limit(dtype) * size
    assert torch.equal(torch.nan_to_num(there.factors), torch.nan_to_num(again.factors))


def test_the_callers_stream_is_used():
    X = data(torch.float64).cuda()
    stream = torch.cuda.Stream()
    expected = itspace.align(itspace.Target.from_features(X), rank=4, steps=2)
    with torch.cuda.stream(stream):
        stream.wait_stream(torch.cuda.default_stream())
        slow = torch.randn(4000, 4000, device="cuda")
        for _ in range(20):
            slow = slow @ slow / slow.norm()
        late = X + 0 * slow[0, 0].double()  # ready only when all of that is
        result = itspace.align(itspace.Target.from_features(late), rank=4, steps=2)
        doubled = 2 * result.factor
    stream.synchronize()
    assert torch.equal(doubled, 2 * expected.factor)


def test_the_callback_sees_tensors_of_the_gpu_and_stops_the_run():
    seen = []

    def look(step, factor):
        seen.append(factor)
        return step["index"] == 1

    result = itspace.align(covariance_of(data(torch.float64)).cuda(), rank=3, steps=5, callback=look)
    assert result.status == "stopped" and len(seen) == 2 and all(factor.is_cuda for factor in seen)


def test_a_view_of_rows_is_borrowed():
    wide = data(torch.float32, d=48).cuda()
    target = itspace.Target.from_features(wide[:, 4:44])
    plain = itspace.Target.from_features(wide[:, 4:44].contiguous())
    block = randn(40, 3).float().cuda()
    assert torch.equal(target.apply(block), plain.apply(block))
    assert target._taken.array.data_ptr() == wide[:, 4:44].data_ptr()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loss_and_its_gradients(dtype):
    found = []
    for device in ("cpu", "cuda"):
        X, Y = data(dtype, n=90).to(device).requires_grad_(), randn(40, 5, seed=2).to(dtype).to(device).requires_grad_()
        loss = bures_wasserstein_loss(Y, X)
        loss.backward()
        plain = bures_wasserstein_loss(Y.detach(), covariance_of(X.detach()))
        found.append((loss.detach().cpu(), Y.grad.cpu(), X.grad.cpu(), plain.cpu()))
        assert loss.device.type == device
    size = float(covariance_of(data(dtype, n=90)).trace())
    assert abs(float(found[0][0] - found[1][0])) < limit(dtype) * size
    assert abs(float(found[0][3] - found[1][3])) < limit(dtype) * size
    assert apart(found[1][1], found[0][1]) < 10 * limit(dtype)
    assert apart(found[1][2], found[0][2]) < 10 * limit(dtype)


@pytest.mark.parametrize("kind", ["monge", "whiten", "mean"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_maps_move_samples_as_on_the_host(dtype, kind):
    X, Z = data(dtype), 2 * data(dtype) + 1
    models = [itspace.model_of(itspace.Target.from_features(x), itspace.start_from(itspace.Target.from_features(x), 5)) for x in (Z, X)]
    tmap = itspace.TransportMap.from_models(*models, kind=kind)
    assert apart(tmap.apply(Z.cuda()), tmap.apply(Z)) < limit(dtype)
    assert apart(tmap.apply(Z[0].cuda()), tmap.apply(Z[0])) < limit(dtype)
    assert torch.equal(tmap.apply(Z.cuda()), tmap.apply(Z.cuda()))
    bad = Z.cuda()
    bad[3, 1] = float("nan")
    with pytest.raises(ValueError, match="NaN"):
        tmap.apply(bad)


@pytest.mark.parametrize("scale", [1.0, 1e-2])
def test_distances_are_the_hosts(scale):
    X, Z = data(torch.float64, n=500, d=60), 2 * data(torch.float64, n=700, d=60) * scale + 1
    A, B = covariance_of(X), covariance_of(Z)
    here = itspace.bures_wasserstein(A, B, squared=True, accuracy=0)
    there = itspace.bures_wasserstein(A.cuda(), B.cuda(), squared=True, accuracy=1e-9)
    assert abs(there - here) <= 1e-9 * here
    squared, error, on_host, products = cuda.dense_distance(cuda.Device(0, 0), A.cuda(), B.cuda(), 1e-9)
    assert not on_host and products > 0 and abs(squared - here) <= error <= 1e-9 * here
    here = itspace.frechet_distance_from_features(X, Z, accuracy=0)
    assert abs(itspace.frechet_distance_from_features(X.cuda(), Z.cuda()) - here) <= 1e-8 * here
    mu = X.mean(dim=0), Z.mean(dim=0)
    there = itspace.frechet_distance(mu[0].cuda(), A.cuda(), mu[1].cuda(), B.cuda())
    assert abs(there - itspace.frechet_distance(mu[0], A, mu[1], B)) <= 1e-8 * here


def test_distances_that_the_device_cannot_certify_come_from_the_host():
    X = data(torch.float64, n=30, d=60)  # singular
    A, B = covariance_of(X), covariance_of(2 * data(torch.float64, n=500, d=60))
    assert cuda.dense_distance(cuda.Device(0, 0), A.cuda(), B.cuda(), 1e-9)[2]
    here = itspace.bures_wasserstein(A, B, squared=True)
    assert abs(itspace.bures_wasserstein(A.cuda(), B.cuda(), squared=True) - here) <= 2e-8 * here


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_layer_follows_its_batches_as_on_the_host(dtype):
    layers = [AlignLayer(40, 5, dtype=dtype).to(device) for device in ("cpu", "cuda")]
    for layer in layers:
        device = layer.factor.device
        for k in range(4):
            layer(data(dtype).to(device)[50 * k : 50 * k + 200])
        layer.keep_reference()
        with torch.no_grad():
            for k in range(4):
                layer((2 * data(dtype) + 1).to(device)[50 * k : 50 * k + 200])
        layer.eval()
    here, there = layers
    assert all(buffer.is_cuda for buffer in there.buffers()) and there.certified
    assert all(torch.equal(a.cpu(), b) for a, b in zip(there.buffers(), here.buffers()))  # the host follows for both
    moved = [layer((2 * data(dtype) + 1).to(layer.factor.device)) for layer in layers]
    assert apart(moved[1], moved[0]) < limit(dtype) ** 0.5
    twin = copy.deepcopy(there)
    assert torch.equal(twin((2 * data(dtype)).cuda()), there((2 * data(dtype)).cuda()))


def test_a_layer_under_autocast_works_in_its_own_dtype():
    layer = AlignLayer(40, 5).cuda()
    X = data(torch.float32).cuda()
    with torch.autocast("cuda", dtype=torch.float16):
        out = layer(X.half())
    assert out.dtype == torch.float32 and layer.factor.dtype == torch.float32 and int(layer.num_batches_tracked) == 1


def test_devices_are_not_mixed():
    X = data(torch.float32)
    for call in (
        lambda: itspace.align(itspace.Target.from_features(X.cuda()), randn(40, 3).float()),
        lambda: itspace.align(itspace.Target.from_features(X), randn(40, 3).float().cuda()),
        lambda: itspace.align_batch(randn(2, 5, 5).cuda(), randn(2, 5, 2)),
        lambda: bures_wasserstein_loss(randn(40, 3).float().cuda(), X),
        lambda: AlignLayer(40, 3)(X.cuda()),
    ):
        with pytest.raises(ValueError, match="move one of them"):
            call()


def test_out_of_memory_is_said_and_the_process_goes_on():
    free, _ = torch.cuda.mem_get_info()
    X = data(torch.float32).cuda()
    target = itspace.Target.from_features(X)
    held = torch.empty(int(free * 0.98), dtype=torch.uint8, device="cuda")
    try:
        try:
            itspace.align(itspace.Target.from_factor(X.T.repeat(1, 2000)), rank=4)
        except (RuntimeError, torch.cuda.OutOfMemoryError) as error:
            assert "memory" in str(error)
    finally:
        del held
        torch.cuda.empty_cache()
    assert itspace.align(target, rank=4).certified


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_cupy_are_worked_on_where_they_lie(dtype):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    X, start = data(dtype), randn(40, 6, seed=1).to(dtype)
    there = cupy.asarray(X.numpy())
    with cupy.cuda.Stream(non_blocking=True):
        late = there + 0 * (cupy.ones((3000, 3000)) @ cupy.ones((3000, 3000)))[0, 0].astype(there.dtype)
        result = itspace.align(itspace.Target.from_features(late), cupy.asarray(start.numpy()), steps=3)
        doubled = 2 * result.factor
        cupy.cuda.get_current_stream().synchronize()
    assert isinstance(result.factor, cupy.ndarray) and result.factor.dtype == there.dtype
    expected = itspace.align(itspace.Target.from_features(X), start, steps=3).factor
    factor = torch.from_numpy(cupy.asnumpy(doubled)) / 2
    assert apart(factor @ factor.T, expected @ expected.T) < limit(dtype)
    sigma, block = cupy.asfortranarray(cupy.cov(there.T)), cupy.asarray(start.double().numpy())
    product, expected = itspace.Target.from_covariance(sigma).apply(block), sigma @ block
    assert float(cupy.linalg.norm(product - expected)) < limit(dtype) * float(cupy.linalg.norm(expected))
    here = itspace.frechet_distance_from_features(X, 2 * X + 1)
    assert abs(itspace.frechet_distance_from_features(there, 2 * there + 1) - here) <= (1e-8 + limit(dtype)) * here
    with pytest.raises(ValueError, match="NaN"):
        itspace.align(cupy.full((5, 5), np.nan, dtype=there.dtype), rank=2)
