# SPDX-License-Identifier: Apache-2.0
"""A network with an AlignLayer, trained and then adapted: on the CPU and, where there is one, on a GPU.

Between its two halves the network has a layer that follows the covariance of what passes through it. It is trained on
images of one camera; the layer keeps what it saw as its reference. Then batches of a worse camera arrive without labels,
the layer alone follows them, and moves them into the reference before the second half sees them. Both devices start from
the same weights and see the same batches: the curves are the same to rounding.

    python examples/train_and_adapt.py --out train_and_adapt.png
"""

from __future__ import annotations

import argparse
import copy
import time

import numpy as np
import torch
from example_data import load_images, worse_camera
from torch import nn
from torch.nn.functional import cross_entropy

from itspace.torch import AlignLayer


def tensor(array):
    return torch.from_dlpack(np.ascontiguousarray(array))


def network(inputs, hidden, rank):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.Tanh(), AlignLayer(hidden, rank), nn.Linear(hidden, 64), nn.ReLU(), nn.Linear(64, 10)
    ).double()  # fmt: skip


def accuracy(model, images, labels):
    with torch.no_grad():
        return float((model.eval()(images).argmax(dim=1) == labels).double().mean())


def train(model, images, labels, epochs, size):
    """The loss of every batch."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    order, losses = torch.Generator().manual_seed(1), []
    for _ in range(epochs):
        for rows in torch.randperm(len(images), generator=order).to(images.device).split(size):
            loss = cross_entropy(model.train()(images[rows]), labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    return losses


def adapt(model, images, labels, size):
    """The accuracy on every batch of another camera, with the layer following and without it; whether all steps held."""
    layer, frozen, certified = model[2], copy.deepcopy(model), True
    layer.keep_reference()
    layer.reset_running_stats()  # another camera is another stream
    followed, left = [], []
    for rows in torch.arange(len(images), device=images.device).split(size):
        model.eval()
        with torch.no_grad():
            layer.train()(model[:2](images[rows]))
        certified = certified and layer.certified
        followed.append(accuracy(model, images[rows], labels[rows]))
        left.append(accuracy(frozen, images[rows], labels[rows]))
    return followed, left, certified


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", default="train_and_adapt.png", help="the picture to write; '' for none")
    parser.add_argument("--rank", type=int, default=16, help="rank budget of the layer")
    parser.add_argument("--epochs", type=int, default=4)
    arguments = parser.parse_args()

    images, labels, test_images, test_labels, side, name = load_images(train=4000, test=1500)
    other = worse_camera(test_images, side)
    size = min(300, len(test_images) // 4)
    devices = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
    initial, curves = network(images.shape[1], 128, arguments.rank), {}
    print(f"{name}: {len(images)} images, batches of {size}, a layer of rank {arguments.rank} in dimension 128, float64")
    for device in devices:
        model = copy.deepcopy(initial).to(device)
        inputs, answers, shifted, of_shifted = (
            tensor(values).to(device, kind)
            for values, kind in (
                (images, torch.float64), (labels.astype(np.int64), torch.int64),
                (other, torch.float64), (test_labels.astype(np.int64), torch.int64),
            )
        )  # fmt: skip
        begin = time.perf_counter()
        losses = train(model, inputs, answers, arguments.epochs, size)
        followed, left, certified = adapt(model, shifted, of_shifted, size)
        seconds = time.perf_counter() - begin
        curves[device] = (losses, followed, left)
        print(f"  on {device}: loss {losses[0]:.4f} -> {losses[-1]:.4f}, {seconds:.1f} s; all steps certified: {certified}")
        print(f"  {100 * np.mean(left):5.1f} %  another camera, no adaptation ({device})")
        print(f"  {100 * np.mean(followed):5.1f} %  another camera, the layer follows ({device})")
    if len(devices) > 1:
        apart = [float(np.abs(np.subtract(a, b)).max()) for a, b in zip(curves["cpu"], curves["cuda"])]
        print(f"the curves differ by {apart[0]:.1e} (loss) and {apart[1]:.1e} (accuracy) at most")
    else:
        print("no GPU here: the CPU alone")
    if arguments.out:
        draw(arguments.out, name, curves)
        print(f"The picture is in {arguments.out}")


def draw(path, name, curves):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for (device, (losses, followed, alone)), line in zip(curves.items(), ("-", "--")):
        above, below = ("tab:blue", "tab:gray") if line == "-" else ("tab:orange", "black")
        left.plot(losses, line, color=above, label=device)
        batches = range(1, len(followed) + 1)
        right.plot(batches, 100 * np.asarray(followed), line, color=above, label=f"the layer follows, {device}")
        right.plot(batches, 100 * np.asarray(alone), line, color=below, label=f"left alone, {device}")
    left.set_xlabel("batch of the training")
    left.set_ylabel(f"loss ({name})")
    right.set_xlabel("batch of another camera")
    right.set_ylabel("accuracy, %")
    right.set_ylim(0, 100)
    right.set_xticks(batches)
    for axes in (left, right):
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
