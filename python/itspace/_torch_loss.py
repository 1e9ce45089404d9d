# SPDX-License-Identifier: Apache-2.0
# Where PyTorch is not installed its types are unknown.
# mypy: disallow-subclassing-any=False, disallow-untyped-decorators=False, disallow-untyped-calls=False
# mypy: warn-return-any=False
"""The Bures-Wasserstein loss of `itspace.torch`, and its gradients as autograd asks for them."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

import itspace
from itspace._arrays import covariance, matrix
from itspace._torch_tensors import array_of, check_samples, check_tensor, scalar_like, tensor_like


def bures_wasserstein_loss(
    Y: Tensor, target: Any, *, target_as: Literal["auto", "covariance", "features"] = "auto"
) -> Tensor:
    """W2^2(Y Y', Sigma), the squared Bures-Wasserstein distance of a factor to a target covariance.

    The gradient is ``2 (Y - B)`` with ``B = Sigma Y (Y' Sigma Y)^(-1/2)``: one product with Sigma and r x r work, where
    backpropagation through a matrix root of Sigma costs O(d^3) and gives NaN for a singular Sigma. This one is finite
    there. At ``Y = 0`` it is 0, though 0 is no minimum: do not initialise a factor with zeros.

    Parameters
    ----------
    Y : Tensor of shape (d, r)
        The factor; its gradient is computed where it requires one.
    target : itspace.Target, Tensor of shape (d, d), or Tensor of shape (n, d)
        The target: an operator, a covariance, or features, one sample per row. The gradient of the loss with respect
        to features (through their mean and their covariance) is computed where they require one; an operator and a
        covariance are constants.
    target_as : {"auto", "covariance", "features"}, default="auto"
        What a tensor holds. By default a square one is a covariance and any other is features.

    Returns
    -------
    Tensor
        A scalar in the dtype of Y.

    Examples
    --------
    >>> import torch
    >>> from itspace.torch import bures_wasserstein_loss
    >>> Y = torch.tensor([[1.0], [0.0]], dtype=torch.float64, requires_grad=True)
    >>> loss = bures_wasserstein_loss(Y, torch.diag(torch.tensor([4.0, 0.0], dtype=torch.float64)))
    >>> loss.item()
    1.0
    >>> loss.backward()
    >>> Y.grad.T
    tensor([[-2.,  0.]], dtype=torch.float64)
    """
    if target_as not in ("auto", "covariance", "features"):
        raise ValueError(f"target_as is {target_as!r}; it must be 'auto', 'covariance' or 'features'")
    check_tensor("Y", Y)
    if not isinstance(target, Tensor):
        if target_as != "auto":
            raise ValueError(f"target_as is {target_as!r}, which is for tensors; the target is {type(target).__name__}")
        return _FactorLoss.apply(Y, target)
    check_tensor("the target", target)
    if target.dtype != Y.dtype:
        raise TypeError(f"Y is {Y.dtype} and the target is {target.dtype}; convert one of them")
    if target.device != Y.device:
        raise ValueError(f"Y is on {Y.device} and the target on {target.device}; move one of them: target.to(Y.device)")
    if target_as == "features" or (target_as == "auto" and target.shape[0] != target.shape[1]):
        check_samples(target, "the target")
        return _FeaturesLoss.apply(Y, target)
    if target.requires_grad:
        raise ValueError(
            "the target covariance requires a gradient, which is offered for features only; "
            "detach it, or pass the features it came from"
        )
    try:
        sigma = target if target.is_cuda else covariance(matrix(array_of(target), "the target"), "the target")
        known = itspace.Target.from_covariance(sigma)
    except ValueError as error:  # here it can be said what else a tensor may be
        raise ValueError(f"{error}. For a sample in each row pass target_as='features'") from None
    return _FactorLoss.apply(Y, known)


class _FactorLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, Y: Tensor, target: Any) -> Tensor:
        objective, gradient = itspace.objective_and_gradient(array_of(Y), target)
        ctx.save_for_backward(tensor_like(gradient, Y))
        return scalar_like(objective, Y)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, None]:
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None


class _FeaturesLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, Y: Tensor, features: Tensor) -> Tensor:
        if not ctx.needs_input_grad[1]:
            target = itspace.Target.from_features(array_of(features))
            objective, gradient = itspace.objective_and_gradient(array_of(Y), target)
            ctx.save_for_backward(tensor_like(gradient, Y), None)
        else:
            objective, gradient, of_features = itspace.objective_and_features_gradient(array_of(Y), array_of(features))
            ctx.save_for_backward(tensor_like(gradient, Y), tensor_like(of_features, features))
        return scalar_like(objective, Y)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor | None]:
        gradient, of_features = ctx.saved_tensors
        return upstream * gradient, None if of_features is None else upstream * of_features
