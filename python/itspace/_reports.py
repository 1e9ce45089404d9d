# SPDX-License-Identifier: Apache-2.0
# scikit-learn comes without types.
# mypy: warn-return-any=False
"""What `itspace.sklearn.CovarianceAligner` says of its decision (`report_`) and of what it leans on (`harm_report_`)."""

from __future__ import annotations

from typing import Any, Mapping

import numpy as np
from sklearn.utils import Bunch

from itspace import _gate

_NO_TARGET = (
    "no target domain was given: transform returns its input; call adapt(Xt), or fit with Xt= or sample_domain="
)


def report_of(
    decision: _gate.Decision,
    shift: _gate.Shift,
    predictions: Mapping[str, _gate.Predictions] | None = None,
    *,
    asked_for: bool = False,
) -> Bunch:
    """`predictions` are what a head said, None where there was none; `asked_for`: the map was named, nothing was decided."""
    known = predictions is not None and predictions["none"].information is not None
    by_what = "moments" if predictions is None else "probabilities" if known else "labels"
    return Bunch(
        decision=decision.choice,
        sentence=decision.sentence,
        evidence=None if asked_for else by_what,
        shift=shift._asdict(),
        candidates={} if predictions is None else {name: p._asdict() for name, p in predictions.items()},
    )


def report_without_target() -> Bunch:
    return Bunch(decision="none", sentence=_NO_TARGET, evidence=None, shift=None, candidates={})


def harm_of(
    report: Bunch,
    shift: _gate.Shift,
    *,
    samples: tuple[int, float],
    features: int,
    displacement: float,
    spread: float,
    certified: bool,
    noise_share: float,
) -> Bunch:
    """`samples` are those of source and target, `spread` is the target's variance, over all features."""
    warnings = []
    if not certified:
        warnings.append("a step of the alignment broke its promise; see trace_")
    if report.decision == "whiten" and noise_share > 0.5:
        warnings.append(f"{100 * noise_share:.0f} % of the shift is noise, and whiten is not shrunk by it")
    relative = float(np.sqrt(displacement / spread)) if spread > 0 else (np.inf if displacement > 0 else 0.0)
    return Bunch(
        noise_share=noise_share,
        mean_share=shift.mean_share,
        unexplained_mean=shift.unexplained,
        samples=samples,
        features=features,
        displacement=displacement,
        relative_displacement=relative,
        gate=f"{report.decision}: {report.sentence}",
        label_shift=_gate.about_label_shift(shift),
        warnings=warnings,
    )


def harm_without_target(samples: int, features: int) -> Bunch:
    return Bunch(
        noise_share=np.nan,
        mean_share=np.nan,
        unexplained_mean=np.nan,
        samples=(samples, 0),
        features=features,
        displacement=np.nan,
        relative_displacement=np.nan,
        gate=_NO_TARGET,
        label_shift="",
        warnings=[_NO_TARGET],
    )
