# SPDX-License-Identifier: Apache-2.0
"""The Frechet distance behind FID, without a matrix square root.

FID packages compute tr (C1 C2)^(1/2) with scipy.linalg.sqrtm of a nonsymmetric product. It is slow, and where a
covariance is singular (fewer samples than features) it loses half its digits or fails, so they add an offset to the
diagonal. Here the distance is a sum of squares of factors: real, finite and never negative, from covariances or from
features. The truth it is held against is written from the definition: with centred samples Z1, Z2 (each row over the
root of n - 1), tr (C1 C2)^(1/2) is the sum of the singular values of Z1 Z2'.

    python examples/fid_without_sqrtm.py --out fid_without_sqrtm.png
"""

from __future__ import annotations

import argparse
import time
import warnings

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
from example_data import load_images, worse_camera

import itspace


def fid_by_sqrtm(mu1, sigma1, mu2, sigma2):
    """What FID packages do, without their offset. NaN where it fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = scipy.linalg.sqrtm(sigma1 @ sigma2)
    difference = mu1 - mu2
    return float(difference @ difference + np.trace(sigma1) + np.trace(sigma2) - 2 * np.trace(root).real)


def fid_by_definition(X1, X2):
    Z1, Z2 = ((X - X.mean(axis=0)) / np.sqrt(len(X) - 1) for X in (X1, X2))
    cross = np.linalg.svd(Z1 @ Z2.T, compute_uv=False).sum()
    return ((X1.mean(axis=0) - X2.mean(axis=0)) ** 2).sum() + (Z1**2).sum() + (Z2**2).sum() - 2 * cross


def moments(X):
    return X.mean(axis=0), np.cov(X.T)


def timed(function, *arguments):
    begin = time.perf_counter()
    value = function(*arguments)
    return value, time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="fid_without_sqrtm.png", help="the picture to write")
    parser.add_argument("--dim", type=int, default=512, help="features of the random network")
    arguments = parser.parse_args()

    images, _, others, _, side, name = load_images(train=1500, test=1500)
    # A random network stands in for Inception: one ReLU layer with fixed weights.
    weights = np.random.default_rng(0).normal(size=(images.shape[1], arguments.dim)) / np.sqrt(images.shape[1])

    def features(pictures):
        return np.maximum(pictures.astype(float) @ weights, 0)

    reference = features(images)

    print(f"{name}, {arguments.dim} features")
    print("                          by definition      itspace (features)   itspace (covariances)      scipy sqrtm")
    strengths = np.linspace(0, 1.2, 5)
    curve = {"definition": [], "itspace": [], "sqrtm": []}
    seconds = {"itspace": 0.0, "sqrtm": 0.0}
    for strength in strengths:
        X = features(worse_camera(others, side, strength))
        truth = fid_by_definition(reference, X)
        ours, t_ours = timed(itspace.frechet_distance, *moments(reference), *moments(X))
        theirs, t_theirs = timed(fid_by_sqrtm, *moments(reference), *moments(X))
        from_features = itspace.frechet_distance_from_features(reference, X)
        show(f"camera, strength {strength:.1f}", truth, from_features, ours, theirs)
        for key, value in zip(curve, (truth, ours, theirs)):
            curve[key].append(value)
        seconds["itspace"] += t_ours
        seconds["sqrtm"] += t_theirs

    # Fewer samples than features: singular covariances. The distance of a set to itself is zero.
    counts = [40, 80, 160, 320, 640, 1280]
    errors = {"itspace, from features": [], "itspace, from covariances": [], "scipy.linalg.sqrtm": []}
    for count in counts:
        X = reference[:count]
        ours = itspace.frechet_distance(*moments(X), *moments(X))
        theirs = fid_by_sqrtm(*moments(X), *moments(X))
        from_features = itspace.frechet_distance_from_features(X, X)
        show(f"set to itself, n = {count}", 0.0, from_features, ours, theirs)
        scale = 2 * np.trace(np.cov(X.T))
        for values, value in zip(errors.values(), (from_features, ours, theirs)):
            values.append(abs(value) / scale)
    print(f"sqrtm took {seconds['sqrtm'] / seconds['itspace']:.1f} times as long as itspace from covariances", end=" ")
    print(f"({1e3 * seconds['itspace'] / len(strengths):.0f} ms a distance)")
    draw(arguments.out, name, arguments.dim, strengths, curve, counts, errors)
    print(f"The picture is in {arguments.out}")


def show(title, *values):
    print(f"  {title:22s}" + "".join(f"{value:20.10g}" for value in values))


def draw(path, name, dim, strengths, curve, counts, errors):
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    left.plot(strengths, curve["definition"], color="0.8", linewidth=7, label="by definition (SVD of samples)")
    left.plot(strengths, curve["sqrtm"], "x", color="tab:red", markersize=9, label="scipy.linalg.sqrtm")
    left.plot(strengths, curve["itspace"], "-", color="tab:blue", label="itspace.frechet_distance")
    left.set_xlabel("strength of the camera's change")
    left.set_ylabel("squared Fréchet distance")
    left.set_title(f"{name}, {dim} random features", fontsize=10)
    left.legend(frameon=False)
    smallest = 1e-18  # zero has no place on this axis: what is smaller is drawn here
    for (title, values), style in zip(errors.items(), ("o-", "s-", "x-")):
        color = "tab:red" if "sqrtm" in title else "tab:blue" if "features" in title else "tab:cyan"
        right.loglog(counts, np.maximum(values, smallest), style, color=color, label=title)
    right.axvline(dim, color="0.7", linestyle=":")
    right.annotate("n = d", (1.04 * dim, 0.93), xycoords=("data", "axes fraction"), color="0.5")
    right.set_ylim(smallest / 10, 1e-5)
    exponents = [-18, -15, -12, -9, -6]
    names = [f"$10^{{{exponent}}}$" for exponent in exponents]
    right.set_yticks([10.0**exponent for exponent in exponents], [names[0] + "\nor less", *names[1:]])
    right.set_xlabel("samples n")
    right.set_ylabel("distance of a set to itself,\nas a share of its variance")
    right.set_title("zero is the right answer", fontsize=10)
    right.legend(frameon=False, loc="center left", bbox_to_anchor=(0.0, 0.55))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
