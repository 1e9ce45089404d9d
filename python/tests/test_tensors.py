# SPDX-License-Identifier: Apache-2.0
"""Tensors given to the functions of NumPy's side: results in the caller's library, refusals that name the argument."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import itspace  # noqa: E402
from itspace.torch import bures_wasserstein_loss  # noqa: E402
from tensors import covariance_of, randn  # noqa: E402


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


def test_a_target_of_tensors_pickles_into_tensors():
    target = itspace.Target.from_features(randn(30, 5))
    again = copy.deepcopy(target)
    assert isinstance(itspace.align(again, rank=2).factor, torch.Tensor)
    assert torch.equal(again.apply(randn(5, 2)), target.apply(randn(5, 2)))
