# SPDX-License-Identifier: Apache-2.0
"""Every example runs to its end, keeps its word, and leaves a picture."""

import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(name, tmp_path, *arguments):
    picture = tmp_path / "picture.png"
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), "--out", str(picture), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "MPLCONFIGDIR": str(tmp_path)},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    header = picture.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", header[16:24])
    assert width > 600 and height > 300
    return done.stdout


def percent(line_with, text):
    return next(float(re.search(r"([\d.]+) %", line)[1]) for line in text.splitlines() if line_with in line)


def test_domain_adaptation(tmp_path):
    text = run("domain_adaptation", tmp_path)
    clean, without, means, monge = (
        percent(title, text) for title in ("by the first camera", "no adaptation", "means alone", " %  Monge map")
    )
    assert without < means < monge <= clean + 1


def test_test_time_adaptation(tmp_path):
    text = run("test_time_adaptation", tmp_path)
    without, means, ours = (percent(title, text) for title in ("no adaptation", "running mean", "one certified step"))
    assert without < ours
    if text.startswith("Fashion-MNIST"):  # the digits are too few to follow a drift closely
        assert means < ours
    kept, of = re.search(r"(\d+) of (\d+) steps kept", text).groups()
    assert kept == of


def test_fid_without_sqrtm(tmp_path):
    pytest.importorskip("scipy", reason="SciPy is not installed")
    text = run("fid_without_sqrtm", tmp_path, "--dim", "256")
    rows = [[float(v) for v in line.split()[-4:]] for line in text.splitlines() if "strength" in line]
    assert len(rows) == 5
    for truth, from_features, from_covariances, _ in rows:
        assert abs(from_features - truth) < 1e-8 * truth
        assert abs(from_covariances - truth) < 1e-8 * truth
    for line in (line for line in text.splitlines() if "to itself" in line):
        _, from_features, from_covariances, _ = (float(v) for v in line.split()[-4:])
        assert 0 <= from_features < 1e-12 and 0 <= from_covariances < 1e-9


def test_covariance_kmeans(tmp_path):
    text = run("covariance_kmeans", tmp_path, "--trials", "120")
    ours, entries = (float(line.split()[0]) for line in text.splitlines() if "k-means" in line and line.startswith("  "))
    assert ours > entries + 0.1


def test_following_a_stream_names_the_data_it_lacks(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "following_a_stream.py"), "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "MPLCONFIGDIR": str(tmp_path)},
        cwd=tmp_path,
    )
    assert done.returncode == 1 and "gas_drift_128 is absent" in done.stderr


def test_train_and_adapt(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    text = run("train_and_adapt", tmp_path, "--epochs", "2")
    assert "all steps certified: True" in text and "certified: False" not in text
    if text.startswith("Fashion-MNIST"):
        assert percent("no adaptation (cpu)", text) < percent("the layer follows (cpu)", text)
    apart = re.search(r"the curves differ by (\S+) \(loss\) and (\S+) \(accuracy\)", text)
    if apart:  # there is a GPU
        # Rounding grows through the steps of the training; a sample on the border may change sides.
        assert float(apart[1]) < 1e-6 and float(apart[2]) <= 1 / 100
