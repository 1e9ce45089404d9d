# SPDX-License-Identifier: Apache-2.0
"""Four sources, one target: recordings of the same songs under five noise conditions, each in turn the unseen one.

A classifier of ten genres is trained on half of the songs of four domains and judges the other half in the fifth. The
sources are pooled as they are, or moved into the frame of their barycenter first; then the target is left alone, moved
into the frame of the sources by a map that was asked for, or by the gate's choice.

    python examples/several_sources.py [--data FOLDER]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from itspace.sklearn import CovarianceAligner

DOMAINS = range(5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("ITSPACE_DATA", here.parent / "shared" / "data")))
    parser.add_argument("--rank", type=int, default=16)
    arguments = parser.parse_args()
    folder = arguments.data / "music_genre_mgr58"
    if not folder.is_dir():
        sys.exit(f"several_sources: {folder} is absent; give --data the folder that holds it")
    X = [np.load(folder / f"dom{k}_x.npy").astype(np.float64) for k in DOMAINS]
    y = [np.load(folder / f"dom{k}_y.npy").astype(int) for k in DOMAINS]
    train = np.arange(len(X[0])) % 2 == 0  # the same songs in every domain: split by song

    rows = {}
    for unseen in DOMAINS:
        seen = [k for k in DOMAINS if k != unseen]
        Xs, ys = np.concatenate([X[k][train] for k in seen]), np.concatenate([y[k][train] for k in seen])
        domain = np.repeat([k + 1 for k in seen], train.sum())
        scaler = StandardScaler().fit(Xs)
        Xs, Xt, test = (scaler.transform(values) for values in (Xs, X[unseen][train], X[unseen][~train]))
        both, domains = np.concatenate([Xs, Xt]), np.r_[domain, -np.ones(len(Xt), int)]
        for sources in ("pool", "barycenter"):
            for kind in ("none", "mean", "scale", "monge", "auto"):
                aligner = CovarianceAligner(arguments.rank, map=kind, sources=sources)
                moved = aligner.fit_transform(both, sample_domain=domains)
                head = LogisticRegression(max_iter=1000).fit(moved[domains > 0], ys)
                if kind == "auto":
                    aligner.adapt(Xt, head=head)
                score = head.score(aligner.transform(test), y[unseen][~train])
                rows.setdefault((sources, kind), []).append(score)

    print("| sources | map of the target | " + " | ".join(f"dom{k}" for k in DOMAINS) + " | mean |")
    print("|---|---|" + "---|" * (len(DOMAINS) + 1))
    for (sources, kind), scores in rows.items():
        cells = " | ".join(f"{100 * score:.1f}" for score in scores)
        print(f"| {sources} | {kind} | {cells} | {100 * np.mean(scores):.1f} |")


if __name__ == "__main__":
    main()
