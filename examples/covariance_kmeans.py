# SPDX-License-Identifier: Apache-2.0
"""k-means of covariances, as people know it from EEG: trials are told apart by where the power is, not by a mean.

Each trial is a short recording of 16 channels: sources of three kinds of trial, each with its own pattern over the scalp
(a motor imagery of the left hand, of the right hand, and rest), mixed, with noise. Its covariance says which. The
centres of BuresWassersteinKMeans are barycenters of rank 4; beside it stands k-means of the entries of the covariances.

    python examples/covariance_kmeans.py --out covariance_kmeans.png
"""

from __future__ import annotations

import argparse

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from itspace.cluster import BuresWassersteinKMeans

CHANNELS, SAMPLES, KINDS = 16, 250, ("left hand", "right hand", "rest")


def scalp():
    """Places of the channels on a disc."""
    angles = np.linspace(0, 2 * np.pi, 11, endpoint=False)
    outer = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    angles = np.linspace(0.3, 2 * np.pi + 0.3, 5, endpoint=False)
    return np.concatenate([outer, 0.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)])


def pattern(places, centre, width=0.5):
    return np.exp(-((places - centre) ** 2).sum(axis=1) / (2 * width**2))


def trials(count, rng):
    """(covariances, kinds): the power over one motor area falls when that hand is imagined; its strength varies."""
    places = scalp()
    left, right, back = (pattern(places, np.array(c)) for c in ((-0.5, 0.1), (0.5, 0.1), (0, -0.8)))
    kinds = rng.integers(3, size=count)
    covariances = []
    for kind in kinds:
        # Powers of the two motor rhythms and of the back of the head.
        powers = np.array([0.25 if kind == 1 else 1.0, 0.25 if kind == 0 else 1.0, 1.0])
        powers = powers * np.exp(0.25 * rng.standard_normal(3)) * np.exp(0.4 * rng.standard_normal())
        sources = rng.standard_normal((SAMPLES, 3)) * np.sqrt(3 * powers)
        signals = sources @ np.stack([left, right, back]) + 0.4 * rng.standard_normal((SAMPLES, CHANNELS))
        covariances.append(np.cov(signals.T))
    return np.array(covariances), kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="covariance_kmeans.png", help="the picture to write")
    parser.add_argument("--trials", type=int, default=300)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    covariances, kinds = trials(arguments.trials, rng)
    ours = BuresWassersteinKMeans(n_clusters=3, rank=4, n_init=5, random_state=0).fit(covariances)
    entries = covariances.reshape(len(covariances), -1)
    euclidean = KMeans(3, n_init=10, random_state=0).fit(entries)
    print(f"{len(kinds)} trials of {CHANNELS} channels; agreement with the kinds (adjusted Rand index, 1 is perfect)")
    scores = {
        "Bures-Wasserstein k-means, rank 4": adjusted_rand_score(kinds, ours.labels_),
        "k-means of the entries": adjusted_rand_score(kinds, euclidean.labels_),
    }
    for name, score in scores.items():
        print(f"  {score:.2f}  {name}")
    draw(arguments.out, ours, kinds, scores)
    print(f"The picture is in {arguments.out}")


def draw(path, ours, kinds, scores):
    places = scalp()
    figure, panels = plt.subplots(1, 4, figsize=(12, 3.6), layout="constrained")
    for k, axes in enumerate(panels[:3]):
        members = kinds[ours.labels_ == k]
        shares = np.bincount(members, minlength=3) / max(len(members), 1)
        power = (ours.cluster_centers_[k] ** 2).sum(axis=1)
        axes.add_patch(plt.Circle((0, 0), 1.15, fill=False, color="0.6"))
        axes.plot([-0.1, 0, 0.1], [1.14, 1.27, 1.14], color="0.6")
        axes.scatter(*places.T, c=power, s=220, cmap="viridis", vmin=0, vmax=3.6)
        axes.set_title(f"centre {k + 1}: {len(members)} trials\n{100 * shares.max():.0f} % {KINDS[shares.argmax()]}", fontsize=10)
        axes.set_aspect("equal")
        axes.axis("off")
    labels = ["Bures–\nWasserstein,\nrank 4", "entries"]
    panels[3].bar(labels, list(scores.values()), color=["tab:blue", "0.6"], width=0.6)
    for x, value in enumerate(scores.values()):
        panels[3].text(x, value + 0.02, f"{value:.2f}", ha="center")
    panels[3].set_ylim(0, 1.1)
    panels[3].set_ylabel("agreement with the kinds (ARI)")
    panels[3].spines[["top", "right"]].set_visible(False)
    figure.suptitle("power of each channel at the centres (the front of the head is up)", fontsize=10, x=0.36)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
