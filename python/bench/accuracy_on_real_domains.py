# SPDX-License-Identifier: Apache-2.0
"""Does CovarianceAligner help a frozen classifier? Accuracy on real domains, as a Markdown table.

No adaptation and the means alone stand beside every map. Features are standardised by the source, the classifier is a
logistic regression on the source, and the map sees the target without labels (half of the songs for music, where every
domain holds the same ones).

    ITSPACE_DATA=... python python/bench/accuracy_on_real_domains.py
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from itspace.sklearn import CovarianceAligner

PAIRS = [
    ("music_genre_mgr58", "dom0", "dom4"),
    ("music_genre_mgr58", "dom0", "dom2"),
    ("office_caltech_googlenet1024", "amazon", "webcam"),
    ("office_caltech_googlenet1024", "webcam", "dslr"),
    ("office_caltech_surf800", "amazon", "caltech10"),
    ("office_caltech_surf800", "amazon", "webcam"),
    ("gas_drift_128", "batch1", "batch2"),
    ("gas_drift_128", "batch1", "batch3"),
    ("gas_drift_128", "batch1", "batch8"),
    ("gas_drift_128", "batch4", "batch5"),
]
SHORT = {
    "music_genre_mgr58": "music",
    "office_caltech_googlenet1024": "GoogLeNet",
    "office_caltech_surf800": "SURF",
    "gas_drift_128": "gas",
}
METHODS = {
    "means alone": {"map": "mean"},
    "`monge`, 16": {"rank": 16},
    "`monge`, 4": {"rank": 4},
    "`whiten`, 16": {"rank": 16, "map": "whiten"},
}


def main() -> int:
    data = Path(os.environ.get("ITSPACE_DATA", "../shared/data"))
    if not data.is_dir():
        print(f"no data in {data}; set ITSPACE_DATA", file=sys.stderr)
        return 1
    print("| source → target | n, d | no adaptation | " + " | ".join(METHODS) + " | displacement | warnings |")
    print("|---" * (len(METHODS) + 5) + "|")
    for folder, source, target in PAIRS:
        (Xs, ys), (Xt, yt) = (
            (np.load(data / folder / f"{domain}_x.npy").astype(float), np.load(data / folder / f"{domain}_y.npy"))
            for domain in (source, target)
        )
        if folder.startswith("music"):
            even = np.arange(len(Xs)) % 2 == 0
            Xs, ys, Xt, yt = Xs[even], ys[even], Xt[~even], yt[~even]
        scaler = StandardScaler().fit(Xs)
        Xs, Xt = scaler.transform(Xs), scaler.transform(Xt)
        head = LogisticRegression(C=0.1, max_iter=1000).fit(Xs, ys)
        scores = [head.score(Xt, yt)]
        for parameters in METHODS.values():
            aligner = CovarianceAligner(**parameters).fit(Xs, Xt)
            scores.append(head.score(aligner.transform(Xt), yt))
            if parameters == {"rank": 16}:
                report = aligner.harm_report_
        best = max(scores)
        cells = " | ".join(f"**{100 * s:.1f}**" if s == best else f"{100 * s:.1f}" for s in scores)
        print(
            f"| {SHORT[folder]} {source} → {target} | {len(Xt)}, {Xt.shape[1]} | {cells} | "
            f"{report.relative_displacement:.2f} | {len(report.warnings)} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
