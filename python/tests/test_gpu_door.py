# SPDX-License-Identifier: Apache-2.0
"""What is done with tensors of a GPU on the way to it and back, with the host's tensors for the GPU's and a stand-in for
the extension; and what is said where there is no GPU."""

import pickle
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import itspace
from itspace import _distance, _gpu

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import gpu_stand_in  # noqa: E402
from itspace.torch import AlignLayer, bures_wasserstein_loss  # noqa: E402
from tensors import covariance_of, randn  # noqa: E402


class Elsewhere:
    """An array that says it is on a GPU."""

    def __dlpack_device__(self):
        return (2, 0)


@pytest.fixture
def stream(monkeypatch):
    """Every tensor is on 'cuda:0', and the current stream is what the test says."""
    current = types.SimpleNamespace(cuda_stream=0)
    monkeypatch.setattr(_gpu, "extension", lambda name, place: gpu_stand_in)
    monkeypatch.setattr(_gpu._Torch, "place", staticmethod(lambda tensor: 0))
    monkeypatch.setattr(_gpu._Torch, "stream", staticmethod(lambda ordinal: types.SimpleNamespace(**vars(current))))
    monkeypatch.setattr(_gpu._Torch, "used_in", staticmethod(gpu_stand_in.used_in))
    monkeypatch.setattr(_gpu, "_of_thread", type(_gpu._of_thread)())
    gpu_stand_in.calls.clear()
    gpu_stand_in.uses.clear()
    return current


def test_a_gpu_without_the_extension_is_said_in_words(monkeypatch):
    monkeypatch.setitem(sys.modules, "itspace._cuda", None)
    monkeypatch.delattr(itspace, "_cuda", raising=False)
    for call in (
        lambda: itspace.align(Elsewhere(), rank=1),
        lambda: itspace.Target.from_features(Elsewhere()),
        lambda: itspace.Target.from_covariance(Elsewhere()),
    ):
        with pytest.raises(TypeError, match=r"'cuda:0', and this itspace was built without CUDA: .*nvcc.*\.cpu\(\)"):
            call()


def test_what_numpy_can_fetch_is_the_hosts():
    """As it was before there was a way to a GPU: JAX's arrays give NumPy a copy."""

    class Fetched(Elsewhere):
        def __dlpack__(self, **_):
            raise BufferError("on a GPU")

        def __array__(self, dtype=None, copy=None):
            return np.diag([3.0, 2.0, 1.0])

    assert itspace.Target.from_covariance(Fetched()).trace == 6
    assert itspace.align(Fetched(), rank=1).factor.shape == (3, 1)


def test_an_object_that_has_every_attribute_is_asked_for_none():
    class Anything:
        dim, trace = 3, 6.0

        def apply(self, block):
            return np.diag([3.0, 2.0, 1.0]) @ block

        def __getattr__(self, name):
            if name.startswith("__") or name == "dtype":
                raise AttributeError(name)
            return 0

    assert not _gpu.on_gpu(Anything()) and itspace.align(Anything(), rank=1).factor.shape == (3, 1)


def test_the_extension_says_that_there_is_no_device():
    cuda = pytest.importorskip("itspace._cuda", reason="itspace was built without CUDA", exc_type=ImportError)
    if not cuda.why_no_device():
        pytest.skip("this machine has a CUDA device")
    assert cuda.device_count() == 0
    with pytest.raises(RuntimeError, match="no CUDA device.*CPU"):
        cuda.Device(0, 0)


def test_the_extension_knows_the_types_of_the_core():
    """Maps go from one module to the other: nanobind must find the type that the other one registered."""
    cuda = pytest.importorskip("itspace._cuda", reason="itspace was built without CUDA", exc_type=ImportError)
    for map in (cuda.Map32, cuda.Map64):
        assert "map: itspace._core.TransportMap" in map.__init__.__doc__


def test_what_is_not_together_is_refused():
    with pytest.raises(ValueError, match="start is on cuda:0 and target on the CPU.*target.to"):
        itspace.align(np.eye(3), Elsewhere())
    with pytest.raises(ValueError, match="starts is on cuda:0 and targets on the CPU.*targets.to"):
        itspace.align_batch(np.eye(3)[None], Elsewhere())
    with pytest.raises(ValueError, match="Y is on cuda:0 and target on the CPU"):
        itspace.objective_and_gradient(Elsewhere(), np.eye(3))


def test_a_run_is_the_hosts_and_stays_in_the_callers_library(stream):
    sigma, seen = covariance_of(randn(30, 5)), []
    start = randn(5, 2, seed=1)
    there = itspace.align(sigma, start, steps=3, keep_iterates=True, callback=lambda step, y: seen.append(y))
    assert [kind for kind, *_ in gpu_stand_in.calls] == ["target", "align"]
    assert all(isinstance(y, torch.Tensor) for y in [*seen, *there.iterates, there.factor]) and len(seen) == 4
    here = itspace.align(np.from_dlpack(sigma), np.from_dlpack(start), steps=3, keep_iterates=True)
    assert np.array_equal(np.from_dlpack(there.factor), here.factor)
    assert there.trace["objective"].tolist() == here.trace["objective"].tolist()
    assert there.to_json() == there.to_json() and "factor_checksum" in there.to_json()


def test_tensors_are_borrowed_and_only_what_must_be_is_copied(stream):
    wide = randn(30, 9)
    for X, copied in ((wide, False), (wide[:, 2:7], False), (wide.T, True), (wide[::2, ::2], True)):
        gpu_stand_in.calls.clear()
        target = itspace.Target.from_features(X)
        assert (gpu_stand_in.calls[0][2] != X.data_ptr()) == copied
        spelled_out = target.apply(torch.eye(X.shape[1], dtype=X.dtype))
        assert float((spelled_out - covariance_of(X)).abs().max()) < 1e-12


def test_work_is_done_in_the_stream_that_is_current(stream):
    target = itspace.Target.from_covariance(covariance_of(randn(30, 5)))
    itspace.align(target, rank=2)
    stream.cuda_stream = 77
    itspace.align(target, rank=2)
    itspace.align(target, rank=2)
    stream.cuda_stream = 0
    itspace.align(target, rank=2)
    assert [call[1] for call in gpu_stand_in.calls if call[0] == "align"] == [0, 77, 77, 0]
    assert [call[1] for call in gpu_stand_in.calls if call[0] == "target"] == [0, 77]  # once for each stream
    # Of both the owner of the memory knows, which is a copy that nobody but the target has.
    assert gpu_stand_in.uses == [(target._taken.array.data_ptr(), 0), (target._taken.array.data_ptr(), 77)]


def test_cupys_arrays_are_worked_on_where_they_are(monkeypatch):
    """CuPy computes on the current device; an array of another one is no reason to."""
    current = [0]

    class OnDevice:
        id = 1

        def __enter__(self):
            current.append(self.id)

        def __exit__(self, *_):
            current.pop()

    class ndarray:
        device, dtype = OnDevice(), np.dtype(np.float32)

        def checked(self, *_, **__):
            assert current[-1] == 1, "on the current device, where this array is not"
            return self

        copy = astype = __add__ = __mul__ = __truediv__ = checked
        T = property(checked)

    array = ndarray()
    fake = types.SimpleNamespace(ndarray=ndarray, ascontiguousarray=ndarray.checked, empty=lambda *_, **__: array.checked())
    monkeypatch.setitem(sys.modules, "cupy", fake)
    there = _gpu._CuPy
    assert _gpu.place_of(array) == 1
    for call in (
        lambda: there.contiguous(array), lambda: there.clone(array), lambda: there.as_dtype(array, False),
        lambda: there.averaged(array), lambda: _gpu.scaled(array, 0.5), lambda: there.empty(array, 2, 2),
    ):  # fmt: skip
        assert call() is array and current == [0]


def test_each_thread_has_a_room_of_its_own(stream):
    taken, rooms = _gpu.take(randn(4, 3), "X"), []
    threads = [threading.Thread(target=lambda: rooms.append(_gpu.room(taken))) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    assert rooms[0] is not rooms[1] and _gpu.room(taken) is _gpu.room(taken)


def test_a_stream_outlives_what_works_on_it(stream, monkeypatch):
    class Stream:
        cuda_stream = 5

    gone = []

    def current(ordinal):
        made = Stream()
        weakref.finalize(made, gone.append, "stream")
        return made

    class Device(gpu_stand_in.Device):
        def __del__(self):
            gone.append("device")

    monkeypatch.setattr(_gpu._Torch, "stream", staticmethod(current))
    monkeypatch.setattr(gpu_stand_in, "Device", Device)
    X = randn(30, 5)
    target = itspace.Target.from_features(X)
    map = itspace.TransportMap.from_models(*(itspace.model_of_features(np.from_dlpack(x)) for x in (X, X + 1)), kind="mean")
    map.apply(X)
    _gpu._of_thread.__dict__.clear()  # as after streams enough to forget this one
    gone.clear()
    del target
    assert gone == []  # the map works there still
    del map
    assert gone == ["device", "stream"]


def test_what_another_thread_forgets_is_made_again(stream):
    class Forgetful(dict):
        def __setitem__(self, key, value):
            pass  # gone before it is asked for

    X = randn(30, 5)
    target = itspace.Target.from_features(X)
    target._cores = Forgetful()
    assert itspace.align(target, rank=2).factor.shape == (5, 2)
    map = itspace.TransportMap.from_models(*(itspace.model_of_features(np.from_dlpack(x)) for x in (X, X + 1)), kind="mean")
    map.apply(X)
    map._on_gpu._maps = Forgetful()
    assert float((map.apply(X) - X - 1).abs().max()) < 1e-12


def test_every_kind_of_target_and_its_pickle(stream):
    X = randn(30, 5)
    for target in (
        itspace.Target.from_features(X),
        itspace.Target.from_features(X, np.arange(30.0)),
        itspace.Target.from_covariance(covariance_of(X)),
        itspace.Target.from_factor(X.T),
        itspace.Target.low_rank_plus_diagonal(X.T[:, :3], [3.0, 2.0, 1.0], 0.5),
    ):
        assert target.device == "cuda:0" and "cuda:0" in repr(target)
        again = pickle.loads(pickle.dumps(target))
        assert again.kind == target.kind and again.trace == target.trace
        assert torch.equal(again.apply(X.T[:, :2]), target.apply(X.T[:, :2]))
    assert itspace.Target.from_features(X).mean.dtype == torch.float64


def test_rounding_of_the_triangles_is_averaged_away(stream):
    sigma = covariance_of(randn(30, 5)).float()
    sigma[0, 1] += 1e-7
    target = itspace.Target.from_covariance(sigma)
    spelled_out = target.apply(torch.eye(5))
    assert torch.equal(spelled_out, spelled_out.T)


@pytest.mark.parametrize(
    "error",
    [
        None,
        "CUDA: distances on a device need libcusolver, which was not found",
        "CUDA: cusolverDnDpotrf is not in the library that should have it; install cuBLAS and cuSOLVER of CUDA 12 or 13",
        "CUDA: starting cuBLAS failed with status 1",
    ],
)
def test_an_indefinite_covariance_is_refused_with_the_hosts_words(stream, monkeypatch, error):
    monkeypatch.setattr(gpu_stand_in, "library_error", error)
    sigma = covariance_of(randn(30, 5))
    itspace.Target.from_covariance(sigma)
    indefinite = torch.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=torch.float64)
    with pytest.raises(ValueError, match="indefinite: its smallest eigenvalue is"):
        itspace.Target.from_covariance(indefinite)
    assert sum(call[0] == "cholesky" for call in gpu_stand_in.calls) == 2
    monkeypatch.setattr(gpu_stand_in, "library_error", "CUDA: waiting for the device: an illegal memory access")
    with pytest.raises(RuntimeError, match="illegal"):
        itspace.Target.from_covariance(sigma)
    gpu_stand_in.calls.pop()
    itspace.Target.from_covariance(indefinite, check=False)
    assert sum(call[0] == "cholesky" for call in gpu_stand_in.calls) == 2


def test_gradients_and_models_and_maps(stream):
    X, Y = randn(40, 6), randn(6, 2, seed=1)
    host = np.from_dlpack(X), np.from_dlpack(Y)
    value, gradient = itspace.objective_and_gradient(Y, itspace.Target.from_features(X))
    expected, of_host = itspace.objective_and_gradient(host[1], itspace.Target.from_features(host[0]))
    assert value == expected and np.array_equal(np.from_dlpack(gradient), of_host)
    value, gradient, of_features = itspace.objective_and_features_gradient(Y, X)
    expected = itspace.objective_and_features_gradient(host[1], host[0])
    assert value == expected[0] and np.array_equal(np.from_dlpack(of_features), expected[2])

    target, other = itspace.Target.from_features(X), itspace.Target.from_features(2 * X + 1)
    start = itspace.start_from(target, 2)
    assert itspace.start_from(target, "auto").shape == (6, itspace.auto_rank(itspace.Target.from_features(host[0])))
    model = itspace.model_of(target, start)
    of_host = itspace.model_of(itspace.Target.from_features(host[0]), itspace.start_from(itspace.Target.from_features(host[0]), 2))
    assert model.remainder == of_host.remainder and isinstance(model.factor, torch.Tensor)
    moved = itspace.TransportMap.from_models(itspace.model_of(other, itspace.start_from(other, 2)), model).apply(2 * X + 1)
    assert isinstance(moved, torch.Tensor) and float((moved - X).abs().max()) < 1e-6


def follow(kind):
    layer = AlignLayer(6, 2, dtype=torch.float64, map=kind)
    for seed in range(3):
        layer(randn(40, 6, seed=seed) + 3)
    layer.keep_reference()
    with torch.no_grad():
        for seed in range(3):
            layer(2 * randn(40, 6, seed=seed))
    moved = layer.eval()(2 * randn(40, 6))
    report = layer.gate(2 * randn(40, 6), lambda x: x[:, :3])
    layer.set_reference(randn(40, 6) - 1)
    return [moved, layer(randn(40, 6)), *layer.buffers()], report["decision"]


def losses():
    found = []
    for second in (randn(30, 6), covariance_of(randn(30, 6)), randn(30, 6).requires_grad_()):
        Y = randn(6, 2, seed=1).requires_grad_()
        loss = bures_wasserstein_loss(Y, second)
        loss.backward()
        found += [loss.detach(), Y.grad] + ([second.grad] if second.requires_grad else [])
    return found


def test_the_layer_and_the_loss_go_the_same_way(request, monkeypatch):
    """Every tensor says that it is on a GPU: the same numbers, of the loss by the calls that go there."""
    here = follow("monge"), follow("whiten"), losses()
    request.getfixturevalue("stream")
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    followed = follow("monge"), follow("whiten")
    assert not gpu_stand_in.calls  # the stream that the layer follows is the host's
    there = *followed, losses()
    assert sum(call[0] == "target" for call in gpu_stand_in.calls) == 3
    for (a, decided), (b, expected) in zip(there[:2], here[:2]):
        assert decided == expected and all(torch.equal(x, y) for x, y in zip(a, b))
    assert all(torch.equal(x, y) for x, y in zip(there[2], here[2]))


def test_distances(stream):
    X, Z = randn(40, 6), 2 * randn(50, 6, seed=1) + 1
    A, B, here = covariance_of(X), covariance_of(Z), [np.from_dlpack(covariance_of(x)) for x in (X, Z)]
    means = X.mean(dim=0), Z.mean(dim=0)
    assert itspace.bures_wasserstein(A, B) == itspace.bures_wasserstein(*here)
    expected = itspace.frechet_distance(np.from_dlpack(means[0]), here[0], np.from_dlpack(means[1]), here[1])
    assert itspace.frechet_distance(means[0], A, means[1], B) == expected
    assert itspace.gaussian_w2(means[0], A, means[1], B, squared=True) == expected
    assert itspace.frechet_distance_from_features(X, Z) == itspace.frechet_distance_from_features(*map(np.from_dlpack, (X, Z)))
    assert abs(itspace.bures_wasserstein(A.float(), B) - itspace.bures_wasserstein(A, B)) < 1e-6


def test_no_mean_is_fetched_for_covariances_of_the_host(monkeypatch):
    monkeypatch.setattr(_distance, "host_copy", lambda value: pytest.fail("a mean was fetched"))
    assert itspace.gaussian_w2(np.ones(2), np.eye(2), torch.zeros(2), np.eye(2), squared=True) == 2


def test_a_batch_is_the_hosts_and_stays_in_the_callers_library(stream):
    targets = torch.stack([covariance_of(randn(30, 5, seed=i)) for i in range(4)])
    starts = torch.stack([randn(5, 2, seed=i) for i in range(4)])
    stream.cuda_stream = 7
    with itspace.thread_limit(3):
        there = itspace.align_batch(targets, starts, steps=3, keep_traces=True)
    assert gpu_stand_in.calls == [("batch", 7, 3, targets.data_ptr())]
    here = itspace.align_batch(np.from_dlpack(targets), np.from_dlpack(starts), steps=3, keep_traces=True)
    assert isinstance(there.factors, torch.Tensor) and np.array_equal(np.from_dlpack(there.factors), here.factors)
    assert np.array_equal(there.objectives, here.objectives) and there.status.tolist() == here.status.tolist()
    assert there.traces[2]["objective"].tolist() == here.traces[2]["objective"].tolist()
    # Others' strides are copied there, other dtypes follow the targets, and features are as good.
    turned = itspace.align_batch(targets.transpose(0, 1).contiguous().transpose(0, 1), starts.float(), steps=3)
    assert gpu_stand_in.calls[-1][3] != targets.data_ptr() and turned.factors.dtype == torch.float64
    X = randn(4, 12, 5)
    of_features = itspace.align_batch(X, rank=2, features=True).factors
    expected = itspace.align_batch(np.from_dlpack(X), rank=2, features=True).factors
    assert np.array_equal(np.from_dlpack(of_features), expected)
    targets[1, 2, 3] = float("nan")
    with pytest.warns(RuntimeWarning, match=r"targets\[1\] ended as not_finite"):
        assert list(itspace.align_batch(targets, starts).reasons) == [1]


def test_what_the_host_computes_of_it_keeps_to_the_limit_of_threads(stream):
    X = randn(40, 6)
    with itspace.thread_limit(1):
        itspace.bures_wasserstein(covariance_of(X), covariance_of(2 * X))
        itspace.frechet_distance_from_features(X, 2 * X)
    with itspace.thread_limit(3):
        itspace.bures_wasserstein(covariance_of(X), covariance_of(2 * X))
    assert [call[2] for call in gpu_stand_in.calls if call[0] == "distance"] == [1, 1, 3]


@pytest.mark.parametrize(
    ("kind", "words", "call"),
    [
        (TypeError, r"X is a tensor of float16 on device 'cuda:0'.*X\.float\(\)", lambda X: itspace.Target.from_features(X.half())),
        (TypeError, r"S is a tensor of bfloat16", lambda X: itspace.Target.from_covariance((X.T @ X).bfloat16())),
        (TypeError, r"X is a tensor of layout torch.sparse_coo.*to_dense", lambda X: itspace.Target.from_features(X.to_sparse())),
        (ValueError, r"square.*from_features", lambda X: itspace.align(X, rank=2)),
        (ValueError, r"precision is 'mixed'.*X\.double\(\)", lambda X: itspace.align(X.T @ X, rank=2, precision="mixed")),
        (TypeError, r"on cuda:0, and this is computed on the host", lambda X: itspace.auto_rank(itspace.Target.from_features(X))),
        (TypeError, r"on cuda:0.*standardised on the host", lambda X: itspace.Target.from_features(X).standardised()),
        (ValueError, r"knows no weights", lambda X: itspace.objective_and_features_gradient(X.T[:, :2], X, np.ones(20))),
        (ValueError, r"between two matrices", lambda X: itspace.bures_wasserstein(torch.stack([X.T @ X]), X.T @ X)),
        (ValueError, r"A is 4 x 4 and B 20 x 20", lambda X: itspace.bures_wasserstein(X.T @ X, X @ X.T)),
        (ValueError, r"mu1 has 3 values", lambda X: itspace.gaussian_w2([0, 0, 0], X.T @ X, [0] * 4, X.T @ X)),
        (ValueError, r"checkpoint and resume are for runs on the CPU", lambda X: itspace.align(X.T @ X, rank=2, checkpoint="c.npz")),
        (ValueError, r"precision is 'mixed' and targets.*\.double\(\)", lambda X: itspace.align_batch(X[None], rank=2, precision="mixed")),
        (ValueError, r"targets has shape \(1, 20, 4\).*features=True", lambda X: itspace.align_batch(X[None], rank=2)),
        (ValueError, r"targets has 2 dimension", lambda X: itspace.align_batch(X, rank=2)),
        (TypeError, r"targets is a tensor of float16", lambda X: itspace.align_batch(X.half()[None], rank=2, features=True)),
        (ValueError, r"target is on cuda:0 and start on the CPU.*start\.to", lambda X: itspace.align(X.T @ X, np.eye(4)[:, :2])),
    ],
)
def test_what_a_gpu_does_not_take_is_named(stream, kind, words, call):
    with pytest.raises(kind, match=words):
        call(randn(20, 4))
