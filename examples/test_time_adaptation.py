# SPDX-License-Identifier: Apache-2.0
"""Test-time adaptation: one certified step per batch while the camera drifts.

A classifier is trained once and never touched again. Then batches arrive without labels, and the light moves a little
from each to the next. The state is a mean, a factor of rank r and a remainder. Each batch moves the factor by one step
toward the batch's covariance, which comes with a promise, kept or not: the distance to it falls by at least so much.
The map from the state to the source then takes the batch to where the classifier expects it.

    python examples/test_time_adaptation.py --out test_time_adaptation.png
"""

from __future__ import annotations

import argparse
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from example_data import load_images, worse_camera
from sklearn.linear_model import LogisticRegression

import itspace


class Follower:
    """A source and a state that follows batches."""

    def __init__(self, source, rank, momentum):
        target = itspace.Target.from_features(source)
        self.rank, self.momentum = rank, momentum
        self.factor = itspace.start_from(target, rank)
        self.source = self.model = itspace.model_of(target, self.factor)

    def follow(self, batch):
        """One step toward the covariance of the batch. Returns its record."""
        target, share = itspace.Target.from_features(batch), self.momentum
        result = itspace.align(target, self.factor, rank=self.rank, steps=1, alpha=share)
        of_batch = itspace.model_of(target, result.factor)
        self.factor = result.factor
        self.model = itspace.LowRankGaussian(
            self.factor,
            (1 - share) * self.model.mean + share * of_batch.mean,
            (1 - share) * self.model.remainder + share * of_batch.remainder,
        )
        return result

    def into_the_source(self, batch):
        return itspace.TransportMap.from_models(self.model, self.source).apply(batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="test_time_adaptation.png", help="the picture to write")
    parser.add_argument("--rank", type=int, default=32, help="rank budget of the state")
    parser.add_argument("--momentum", type=float, default=0.3, help="share of a batch in the new state")
    parser.add_argument("--batches", type=int, default=40, help="length of the stream")
    arguments = parser.parse_args()

    images, labels, test_images, test_labels, side, name = load_images(train=6000, test=10000)
    head = LogisticRegression(C=0.1, max_iter=300).fit(images, labels)

    # A batch must show its covariance: several samples for each column of the factor.
    batches = min(arguments.batches, max(1, len(test_images) // 100))
    size = len(test_images) // batches
    rank = min(arguments.rank, images.shape[1], size // 4)
    follower = Follower(images, rank, arguments.momentum)
    running_mean = follower.source.mean.copy()
    accuracy = {"no drift": [], "no adaptation": [], "running mean alone": [], "one certified step per batch": []}
    before, after, promised, certified, seconds = [], [], [], 0, 0.0
    for k in range(batches):
        clean, answers = test_images[k * size : (k + 1) * size], test_labels[k * size : (k + 1) * size]
        progress = k / max(1, batches - 1)
        batch = worse_camera(clean, side, strength=1.2 * min(1, 2 * progress), angle=np.pi * progress)

        begin = time.perf_counter()
        result = follower.follow(batch)
        mapped = follower.into_the_source(batch)
        seconds += time.perf_counter() - begin
        running_mean += arguments.momentum * (batch.mean(axis=0) - running_mean)
        shifted = batch + (follower.source.mean - running_mean).astype(batch.dtype)

        for samples, values in zip((clean, batch, shifted, mapped), accuracy.values()):
            values.append(head.score(samples, answers))
        before.append(result.trace["objective"][0])
        after.append(result.trace["objective"][-1])
        promised.append(before[-1] - result.trace["promised_descent"][-1])
        certified += bool(result.certified)

    print(f"{name}: {batches} batches of {size} images, d = {images.shape[1]}, rank {rank}")
    for title, values in accuracy.items():
        print(f"  {100 * np.mean(values):5.1f} % mean, {100 * np.min(values):5.1f} % worst batch   {title}")
    print(f"{certified} of {batches} steps kept their promise;", end=" ")
    print(f"{1e3 * seconds / batches:.1f} ms a batch for step, map and transport")
    draw(arguments.out, name, accuracy, before, after, promised)
    print(f"The picture is in {arguments.out}")


def draw(path, name, accuracy, before, after, promised):
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(9, 6.4), sharex=True, layout="constrained")
    styles = (("0.55", ":"), ("tab:red", "-"), ("tab:orange", "-"), ("tab:blue", "-"))
    batches = np.arange(1, len(before) + 1)
    for (title, values), (color, line) in zip(accuracy.items(), styles):
        top.plot(batches, 100 * np.asarray(values), line, color=color, label=title, linewidth=1.8)
    top.set_ylabel(f"accuracy, % ({name})")
    top.set_ylim(0, 100)
    top.legend(loc="lower left", ncols=2, frameon=False)
    bottom.vlines(batches, after, before, color="tab:blue", linewidth=1.2)
    bottom.plot(batches, before, "o", color="0.6", markersize=4, label="before the step")
    bottom.plot(batches, promised, "_", color="black", markersize=9, label="promised at most")
    bottom.plot(batches, after, "o", color="tab:blue", markersize=4, label="after the step")
    bottom.set_ylabel("$W_2^2$ to the batch's covariance")
    bottom.set_xlabel("batch")
    bottom.set_ylim(bottom=0)
    bottom.legend(loc="upper right", ncols=1, frameon=False)
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
