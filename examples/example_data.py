# SPDX-License-Identifier: Apache-2.0
"""Labelled images for the examples: Fashion-MNIST (Debian's dataset-fashion-mnist, or the folder that FASHION_MNIST names),
else scikit-learn's digits."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np

FASHION_MNIST = Path(os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist"))
NAMES = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]


def read_idx(path: Path, header: int) -> np.ndarray:
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), dtype=np.uint8, offset=header)


def load_images(train: int, test: int):
    """(train images, labels, test images, labels, side, name): one image per row, values in [0, 1], float32."""
    if FASHION_MNIST.is_dir():
        sets = []
        for prefix, count in (("train", train), ("t10k", test)):
            labels = read_idx(FASHION_MNIST / f"{prefix}-labels-idx1-ubyte.gz", 8)[:count]
            images = read_idx(FASHION_MNIST / f"{prefix}-images-idx3-ubyte.gz", 16).reshape(-1, 784)[:count]
            sets += [images.astype(np.float32) / 255, labels]
        return (*sets, 28, "Fashion-MNIST")
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32)
    half = len(images) // 2
    return images[:half][:train], labels[:half][:train], images[half:][:test], labels[half:][:test], 8, "digits"


def worse_camera(images: np.ndarray, side: int, strength: float = 1.0, angle: float = 0.0) -> np.ndarray:
    """The same images by another camera: light falls off to one side, edges blur, black is grey. An affine change."""
    centred = np.linspace(-1, 1, side)
    slope = np.cos(angle) * centred[None, :] + np.sin(angle) * centred[:, None]
    light = np.exp(-1.2 * strength * (slope + 1) / 2).astype(np.float32)
    spread = 0.25 * strength
    picture = images.reshape(-1, side, side) * light
    for axis in (1, 2):
        picture = (1 - 2 * spread / (1 + 2 * spread)) * picture + spread / (1 + 2 * spread) * (
            np.roll(picture, 1, axis=axis) + np.roll(picture, -1, axis=axis)
        )
    return (0.8 * picture + 0.2 * strength).reshape(images.shape).astype(np.float32)
