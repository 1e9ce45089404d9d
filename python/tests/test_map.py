# SPDX-License-Identifier: Apache-2.0
import copy
import os
import pickle
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

import itspace
from oracle import psd_root


@pytest.fixture
def domains(rng):
    source = rng.standard_normal((400, 10)) * np.linspace(2, 0.5, 10) + 1
    target = rng.standard_normal((300, 10)) * np.linspace(0.5, 2, 10) - 3
    return source, target


def make(domains, rank=4, kind="monge"):
    S, T = (itspace.Target.from_features(x) for x in domains)
    return itspace.TransportMap.between(
        S, itspace.start_from(S, rank), None, T, itspace.start_from(T, rank), None, kind, shrink="none"
    )


def monge(A, B):
    root = psd_root(A)
    inverse = np.linalg.inv(root)
    return inverse @ psd_root(root @ B @ root) @ inverse


def model(Y, S):
    """Y Y' + delta I with what the factor of the leading part leaves out."""
    delta = (np.trace(S) - np.sum(Y**2)) / (len(S) - Y.shape[1])
    return Y @ Y.T + delta * np.eye(len(S))


@pytest.mark.parametrize("kind", ["monge", "whiten"])
def test_is_the_map_between_the_models(domains, kind):
    source, target = domains
    S, T = np.cov(source.T), np.cov(target.T)
    tmap = make(domains, kind=kind)
    X, Z = (model(itspace.start_from(C, 4), C) for C in (T, S))
    expected = monge(X, Z) if kind == "monge" else psd_root(Z) @ np.linalg.inv(psd_root(X))
    np.testing.assert_allclose(tmap.matrix(), expected, atol=1e-9)
    moved = tmap.apply(target)
    np.testing.assert_allclose(moved, source.mean(0) + (target - target.mean(0)) @ expected.T, atol=1e-9)
    np.testing.assert_allclose(tmap.inverse().apply(moved), target, atol=1e-9)
    np.testing.assert_allclose(tmap.apply(target[0]), moved[0], atol=1e-12)
    assert tmap.kind == kind and tmap.dim == 10
    if kind == "monge":
        shift = np.sum((source.mean(0) - target.mean(0)) ** 2)
        assert tmap.displacement == pytest.approx(shift + itspace.bures_wasserstein(X, Z, squared=True), rel=1e-9)


def test_leaves_its_input_alone_and_keeps_the_dtype(domains):
    tmap = make(domains)
    X = domains[1].astype(np.float32)
    before = X.copy()
    moved = tmap.apply(X)
    assert moved.dtype == np.float32
    np.testing.assert_array_equal(X, before)
    np.testing.assert_allclose(moved, tmap.apply(domains[1]), atol=1e-4)
    assert tmap.apply(X[:0]).shape == (0, 10)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_refuses_samples_that_are_not_finite(domains, value):
    X = domains[1].copy()
    X[3, 2] = value
    with pytest.raises(ValueError, match=rf"samples\[3, 2\] is {value}"):
        make(domains).apply(X)


def test_means_given_or_zero(domains):
    source, target = domains
    S, T = np.cov(source.T), np.cov(target.T)
    Ys, Yt = itspace.start_from(S, 3), itspace.start_from(T, 3)
    centred = itspace.TransportMap.between(S, Ys, None, T, Yt, None)
    np.testing.assert_allclose(centred.apply(np.zeros(10)), np.zeros(10), atol=1e-14)
    given = itspace.TransportMap.between(S, Ys, np.ones(10), T, Yt, np.zeros(10))
    np.testing.assert_allclose(given.apply(np.zeros(10)), np.ones(10), atol=1e-14)


def test_diagnosis(domains):
    found = make(domains).diagnose(300, 400)
    assert set(found) == {
        "displacement", "relative_displacement", "mean_share", "touched_variance", "condition", "warnings"
    }  # fmt: skip
    assert found["displacement"] > 0 and 0 < found["touched_variance"] <= 1
    assert any("samples" in text for text in make(domains).diagnose(5, 400)["warnings"])


def same(a, b, X):
    np.testing.assert_array_equal(a.apply(X), b.apply(X))
    np.testing.assert_array_equal(a.inverse().apply(X), b.inverse().apply(X))


def test_save_load_pickle_copy(domains, tmp_path):
    tmap = make(domains)
    path = tmp_path / "map.npz"
    tmap.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["map.npz"]
    same(itspace.TransportMap.load(path), tmap, domains[1])
    same(itspace.TransportMap.load(str(path)), tmap, domains[1])
    same(pickle.loads(pickle.dumps(tmap)), tmap, domains[1])
    same(copy.deepcopy(tmap), tmap, domains[1])
    same(copy.copy(tmap), tmap, domains[1])


def test_the_program_reads_our_file_and_we_read_its(program, domains, tmp_path):
    tmap = make(domains)
    tmap.save(tmp_path / "map.npz")
    np.save(tmp_path / "x.npy", domains[1])
    np.save(tmp_path / "s.npy", domains[0])
    run = lambda *args: subprocess.run([program, *args, "--quiet"], cwd=tmp_path, check=True)  # noqa: E731
    run("transform", "--map", "map.npz", "--in", "x.npy", "--out", "y.npy")
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), tmap.apply(domains[1]), atol=1e-12)
    run("map", "--source", "s.npy", "--target", "x.npy", "--rank", "4", "--steps", "2", "--out", "theirs.npz")
    theirs = itspace.TransportMap.load(tmp_path / "theirs.npz")
    run("transform", "--map", "theirs.npz", "--in", "x.npy", "--out", "z.npy")
    np.testing.assert_allclose(np.load(tmp_path / "z.npy"), theirs.apply(domains[1]), atol=1e-12)


def test_foreign_files_are_refused_by_name(domains, tmp_path):
    tmap = make(domains)
    parts = tmap.parts()
    cases = {
        "array.npy": (lambda p: np.save(p, np.eye(2)), "plain array"),
        "other.npz": (lambda p: np.savez(p, a=1), "no key 'format'"),
        "newer.npz": (lambda p: np.savez(p, format="itspace.map/3", **parts), "itspace.map/3"),
        "short.npz": (lambda p: np.savez(p, format="itspace.map/1", kind="monge"), "no array named 'scalar'"),
        "text.npz": (lambda p: p.write_text("hello"), "neither .npy nor .npz"),
    }
    for name, (write, message) in cases.items():
        write(tmp_path / name)
        with pytest.raises(ValueError, match=message):
            itspace.TransportMap.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        itspace.TransportMap.load(tmp_path / "absent.npz")
    with pytest.raises(OSError):
        tmap.save(tmp_path / "no such folder" / "map.npz")
    bad = dict(parts, core=parts["core"][:2])
    np.savez(tmp_path / "bad.npz", format="itspace.map/1", **bad)
    with pytest.raises(ValueError, match="core"):
        itspace.TransportMap.load(tmp_path / "bad.npz")


def test_save_goes_where_the_program_would(domains, tmp_path):
    tmap, there = make(domains), tmp_path / "there.npz"
    tmap.save(there)
    expected = there.read_bytes()

    link = tmp_path / "link.npz"
    link.symlink_to("target.npz")  # dangling, then not
    for _ in range(2):
        tmap.save(link)
        assert link.is_symlink() and (tmp_path / "target.npz").read_bytes() == expected

    for mode in (0o600, 0o640, 0o666):
        there.chmod(mode)
        tmap.save(there)
        assert stat.S_IMODE(there.stat().st_mode) == mode and there.read_bytes() == expected

    tmap.save("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    tmap.save(pipe)
    reader.join()
    assert got == [expected] and stat.S_ISFIFO(pipe.stat().st_mode)

    tmap.save(os.fsencode(tmp_path / "bytes.npz"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bytes.npz", "link.npz", "pipe", "target.npz", "there.npz"]


def test_what_cannot_be_written_stays(domains, tmp_path):
    tmap, there = make(domains), tmp_path / "map.npz"
    with pytest.raises(OSError, match="is a folder"):
        tmap.save(tmp_path)
    with pytest.raises(OSError, match="make room"):
        tmap.save("/dev/full")
    there.write_bytes(b"old")
    there.chmod(0o444)
    tmp_path.chmod(0o777)
    script = (
        "import os, sys, itspace, numpy as np\n"
        "if os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "model = itspace.LowRankGaussian(np.ones((2, 1)), np.zeros(2), 1.0)\n"
        "try: itspace.TransportMap.from_models(model, model).save('map.npz')\n"
        "except OSError as error: sys.exit(0 if 'ermission' in str(error) else 3)\n"
        "sys.exit(1)\n"
    )
    try:
        ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True)
    finally:
        there.chmod(0o644)
    if ended.returncode != 0 and (b"setgid" in ended.stderr or b"ModuleNotFound" in ended.stderr or b"Permission" in ended.stderr):
        pytest.skip("root that cannot become another user here")
    assert ended.returncode == 0, ended.stderr
    assert there.read_bytes() == b"old"


def test_damaged_and_contradictory_maps_are_refused(domains, tmp_path):
    tmap, path = make(domains), tmp_path / "map.npz"
    parts = tmap.parts()
    for change in ({"core": 2 * parts["core"]}, {"to_root": 2 * parts["to_root"]}, {"kind": "whiten"}, {"scalar": 1.5}):
        np.savez(path, format="itspace.map/1", **dict(parts, **change))
        with pytest.raises(ValueError, match="map's (core contradicts|scalar)"):
            itspace.TransportMap.load(path)
    tmap.save(path)
    whole = path.read_bytes()
    at = whole.index(parts["mean_to"].tobytes())
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    with pytest.raises(ValueError, match="checksum"):
        itspace.TransportMap.load(path)


def test_misuse(domains):
    tmap = make(domains)
    with pytest.raises(ValueError, match="3 columns.*dimension 10"):
        tmap.apply(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="kind is 'magic'"):
        make(domains, kind="magic")
    with pytest.raises(TypeError, match="between"):
        itspace.TransportMap()
    S = np.eye(3)
    with pytest.raises(ValueError, match="2 values"):
        itspace.TransportMap.between(S, np.ones((3, 1)), np.ones(2), S, np.ones((3, 1)), None)
