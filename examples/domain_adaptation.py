# SPDX-License-Identifier: Apache-2.0
"""Domain adaptation in a scikit-learn pipeline: a classifier, and another camera.

A classifier is trained on images of one camera. A second one has a light that falls off to one side, softer edges and
a grey black; its images come without labels. CovarianceAligner asks the classifier which map, if any, to apply to the
second camera's images. Beside it stand no adaptation, each map by itself, and what no adaptation can beat: the same
images by the first camera. The change is affine, of the kind that such a map can undo; docs/should-i-adapt.md has
domains where it is not, and where adaptation hurts.

    python examples/domain_adaptation.py --out domain_adaptation.png
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
from sklearn.pipeline import make_pipeline

from itspace.sklearn import CovarianceAligner


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="domain_adaptation.png", help="the picture to write")
    parser.add_argument("--rank", type=int, default=32, help="rank budget of the two covariance models")
    parser.add_argument("--train", type=int, default=6000, help="training images")
    parser.add_argument("--test", type=int, default=4000, help="images of the second camera")
    arguments = parser.parse_args()

    images, labels, test_images, test_labels, side, name = load_images(arguments.train, arguments.test)
    # The second camera's images are split: the map is learned on one half, judged on the other.
    second = worse_camera(test_images, side)
    half = len(second) // 2
    unlabelled, judged, judged_labels = second[:half], second[half:], test_labels[half:]

    pipe = make_pipeline(CovarianceAligner(rank=arguments.rank), LogisticRegression(C=0.1, max_iter=300))
    pipe.fit(images, labels)  # the source alone: the aligner passes it through
    accuracy = {"the same images by\nthe first camera": pipe.score(test_images[half:], judged_labels)}
    accuracy["no adaptation"] = pipe.score(judged, judged_labels)

    aligner, head = pipe[0], pipe[-1]
    kinds = {
        "the means alone": "mean",
        "whitening-recoloring": "whiten",
        "each feature scaled": "scale",
        "Monge map": "monge",
        "what auto chose": "auto",
    }
    for title, kind in kinds.items():
        aligner.set_params(map=kind)
        begin = time.perf_counter()
        aligner.adapt(unlabelled, head=head if kind == "auto" else None)
        seconds = time.perf_counter() - begin
        accuracy[title] = pipe.score(judged, judged_labels)

    print(f"{name}: {len(images)} labelled source images, {half} unlabelled target images, d = {images.shape[1]}")
    for title, value in accuracy.items():
        print(f"  {100 * value:5.1f} %  {' '.join(title.split())}")
    report = aligner.harm_report_
    print(f"auto, rank {aligner.rank_}, decided in {1e3 * seconds:.0f} ms, certified: {aligner.certified_}")
    print(f"  {report.gate}")
    print(f"  a sample moves by {report.relative_displacement:.2f} times the target's spread")
    print(f"  {100 * report.noise_share:.1f} % of the shift is noise, {100 * report.mean_share:.0f} % is the mean's")
    print(f"  {report.label_shift}")

    draw(arguments.out, name, side, accuracy, test_images[half:], judged, aligner.transform(judged), judged_labels)
    print(f"The picture is in {arguments.out}")


def draw(path, name, side, accuracy, first, second, mapped, labels):
    figure = plt.figure(figsize=(11, 3.4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.2, 1])
    one_of_each = [int(np.flatnonzero(labels == label)[0]) for label in range(6)]
    rows = {"first camera\n(source)": first, "second camera\n(target)": second, "target, mapped\nto the source": mapped}
    for axes_row, (title, pictures) in zip(left.subplots(3, 6), rows.items()):
        for axes, index in zip(axes_row, one_of_each):
            axes.imshow(pictures[index].reshape(side, side), cmap="gray", vmin=0, vmax=1)
            axes.set_xticks([])
            axes.set_yticks([])
        axes_row[0].set_ylabel(title, rotation=0, ha="right", va="center", fontsize=9)
    axes = right.subplots()
    titles = list(accuracy)[::-1]
    values = [100 * accuracy[title] for title in titles]
    colors = {"what auto chose": "tab:blue"}
    bars = axes.barh(titles, values, color=[colors.get(title, "0.75") for title in titles])
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.set_xlim(0, 108)
    axes.set_xlabel(f"accuracy, % ({name})")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
