# SPDX-License-Identifier: Apache-2.0
"""itspace._cuda played by itspace._core on the host's tensors: what the Python side asks of a GPU, without one."""

import numpy as np
import torch

from itspace import _core

calls, uses = [], []


def used_in(tensor, stream):
    uses.append((tensor.data_ptr(), stream.cuda_stream))


def array(tensor):
    assert tensor.stride(1) == 1 or tensor.shape[1] <= 1, "the extension takes rows whose values lie side by side"
    return np.ascontiguousarray(np.from_dlpack(tensor))


def write(tensor, values):
    tensor.copy_(torch.from_dlpack(np.ascontiguousarray(values)))


class Device:
    def __init__(self, ordinal, stream):
        self.ordinal, self.stream = ordinal, stream


class Target:
    def __init__(self, device, core, tensor):
        self.device, self.core, self.tensor = device, core, tensor
        calls.append(("target", device.stream, tensor.data_ptr()))

    @staticmethod
    def from_covariance(device, sigma):
        return Target(device, _core.Target.from_covariance(array(sigma), False), sigma)

    @staticmethod
    def from_features(device, features, weights):
        return Target(device, _core.Target.from_features(array(features), weights), features)

    @staticmethod
    def from_factor(device, factor):
        return Target(device, _core.Target.from_factor(array(factor)), factor)

    @staticmethod
    def low_rank_plus_diagonal(device, u, s, sigma2):
        return Target(device, _core.Target.low_rank_plus_diagonal(array(u), s, sigma2), u)

    def apply(self, y, out):
        write(out, self.core.apply(array(y)))

    def __getattr__(self, name):
        return getattr(self.core, name)


def check_symmetric(device, sigma, name):
    return 0.0 if _core.symmetric(array(sigma), name) is None else 1.0


library_error = None


def is_semidefinite(device, sigma):
    calls.append(("cholesky", device.stream))
    if library_error:
        raise RuntimeError(library_error)
    return bool((np.linalg.eigvalsh(array(sigma)) >= 0).all())


def handed_over(block, make):
    tensor = make(*block.shape)
    write(tensor, block)
    return tensor


def align(target, start, rank, steps, alpha, lam, line_search, solver, route, guard, seed, callback, keep, make):
    calls.append(("align", target.device.stream))
    seen = None if callback is None else lambda step, factor: callback(step, handed_over(factor, make))
    first = None if start is None else array(start)
    factor, trace, iterates = _core.align(
        target.core, first, rank, steps, alpha, lam, line_search, solver, route, guard, seed, seen, keep
    )
    return handed_over(factor, make), trace, [handed_over(iterate, make) for iterate in iterates]


def align_batch(device, targets, starts, rank, features, *options_threads_make):
    *options, threads, make = options_threads_make
    calls.append(("batch", device.stream, threads, targets.data_ptr()))
    assert targets.is_contiguous() and (starts is None or starts.is_contiguous())
    first = None if starts is None else np.from_dlpack(starts)
    factors, *rest = _core.align_batch(np.from_dlpack(targets), first, rank, features, False, *options)
    return (handed_over(factors, make), *rest)


def objective_and_gradient(target, factor, gradient):
    value, found, _ = _core.objective_and_gradient(array(factor), target.core)
    write(gradient, found)
    return value


def objective_and_features_gradient(target, factor, gradient, features_gradient):
    value, found, of_features = _core.objective_and_features_gradient(array(factor), array(target.tensor), None)
    write(gradient, found)
    write(features_gradient, of_features)
    return value


def remainder_of(target, factor, floor, shrinkage):
    return _core.remainder_of(target.core, array(factor), np.zeros(target.core.dim), floor, shrinkage)


class Map64:
    def __init__(self, device, core):
        self.core = core

    def apply_in_place(self, samples):
        rows = np.array(array(samples))
        self.core.apply_in_place(rows)
        write(samples, rows)


Map32 = Map64


def dense_distance(device, a, b, relative, threads):
    calls.append(("distance", device.stream, threads))
    return _core.distance_squared(array(a), array(b), relative), 0.0, False, 0


def features_distance(device, a, b, relative, threads):
    calls.append(("distance", device.stream, threads))
    return _core.features_distance(array(a), array(b), relative)
