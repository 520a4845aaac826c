"""What `tritonforge doctor` finds: one finding a check, from whichever stage knows how to look."""

from __future__ import annotations

from dataclasses import dataclass

OK = "ok"
INFO = "info"
WARN = "warn"
FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding.

    Args:
        name: What was looked at.
        status: ``ok``, ``info`` (missing, and needed by some only), ``warn`` (something will be missing or slow) or
            ``fail`` (something needed does not work).
        detail: What was found.
        fix: What to do about it; empty when it is ok.
    """

    name: str
    status: str
    detail: str
    fix: str = ""
