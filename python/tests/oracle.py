# SPDX-License-Identifier: Apache-2.0
"""What tests compare with: the definitions, written with NumPy alone."""
import numpy as np


def psd_root(S):
    """S^(1/2) by the eigendecomposition, negative eigenvalues (rounding) taken as 0."""
    values, vectors = np.linalg.eigh(np.asarray(S, dtype=np.float64))
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def w2_squared(A, B):
    """tr A + tr B - 2 ||A^(1/2) B^(1/2)||_*, the nuclear norm by singular values."""
    nuclear = np.linalg.svd(psd_root(A) @ psd_root(B), compute_uv=False).sum()
    return float(np.trace(A) + np.trace(B) - 2 * nuclear)


def objective(Y, S):
    """F(Y) = ||Y||^2 + tr S - 2 ||S^(1/2) Y||_*: W2^2(Y Y', S), without the root of a singular Y Y'."""
    return float(np.sum(Y**2) + np.trace(S) - 2 * np.linalg.svd(psd_root(S) @ Y, compute_uv=False).sum())


def certificate_factor(S, Y):
    """B = S^(1/2) polar(S^(1/2) Y)."""
    root = psd_root(S)
    u, _, vt = np.linalg.svd(root @ Y, full_matrices=False)
    return root @ (u @ vt)


def covariance(rng, d, rank=None):
    factor = rng.standard_normal((d, rank or 2 * d)) * np.linspace(1, 0.2, d)[:, None]
    return factor @ factor.T / (rank or 2 * d)
