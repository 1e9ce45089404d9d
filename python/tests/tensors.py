# SPDX-License-Identifier: Apache-2.0
"""What the tests of the PyTorch face share: seeded tensors, and the definitions written with torch alone."""

import torch


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
