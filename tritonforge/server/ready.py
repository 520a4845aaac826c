"""Waiting for a server and its models, with a deadline, and the reason when one does not come up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tritonforge.errors import NotReady, ServerExited
from tritonforge.launch.process import Process

POLL_INTERVAL_S = 0.1
ANSWER_TIMEOUT_S = 10.0
# Triton's state of a version that was loaded before and is now not wanted: not a failure.
UNLOADED = "unloaded"
# protobuf's own line, which comes just before Triton's and has the line and column in config.pbtxt.
PARSE_ERROR = "[libprotobuf ERROR"


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """One line of the repository index.

    Args:
        name: Model.
        version: Version, empty for a model that was never loaded.
        state: ``READY``, ``LOADING``, ``UNLOADING``, ``UNAVAILABLE`` or empty.
        reason: Why it is not ready, in the server's words.
    """

    name: str
    version: str
    state: str
    reason: str


def wait_until_ready(process: Process, http_url: str, *, models: Sequence[str], timeout_s: float) -> float:
    """Wait until the server answers and all `models` are ready; returns the seconds it took.

    Triton opens its endpoints when the models named at start have been loaded or have failed, so the first answer
    settles the matter.

    Raises:
        NotReady: The time has passed, or a model could not be loaded; with the server's reason.
        ServerExited: The server ended.
    """
    start = time.monotonic()
    with httpx2.Client(base_url=http_url, timeout=ANSWER_TIMEOUT_S, trust_env=False) as http:
        while True:
            index = _read_index(http)
            after_s = time.monotonic() - start
            if index is not None:
                waiting = missing_models(index, models)
                if not waiting:
                    return after_s
                _raise_for_failed(index, waiting, log=process.log, after_s=after_s)
            if (code := process.returncode()) is not None:
                raise ServerExited(code, tail=process.tail(), log=process.log)
            if after_s > timeout_s:
                waiting = list(models) if index is None else waiting
                what = f"tritonserver with {', '.join(waiting) or 'no models'}"
                raise NotReady(what, after_s=after_s, reason=_last_words(process), hint=f"see {process.log}")
            time.sleep(POLL_INTERVAL_S)


def missing_models(index: Sequence[IndexEntry], models: Sequence[str]) -> list[str]:
    """The models of which not every wanted version is ready, in their order. Pure."""
    return [model for model in models if not _is_ready([entry for entry in index if entry.name == model])]


def failure_reason(log: Path, model: str) -> str:
    """What the server's log says about a model that it could not read, or an empty string.

    The index has no reason when a model fails before it is loaded, for example on a config.pbtxt that does not parse.
    """
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    parse_error = ""
    for line in lines:
        if line.startswith(PARSE_ERROR):
            parse_error = line.partition("ModelConfig: ")[2]
        elif line.startswith("E") and (f"'{model}'" in line or f"/{model}/" in line):
            # Triton's line: E1130 13:01:02.345678 123 file.cc:45] "text"
            reason = line.partition("] ")[2].strip('"')
            return f"{reason} ({parse_error})" if "read text proto" in reason and parse_error else reason
    return ""


def _read_index(http: httpx2.Client) -> list[IndexEntry] | None:
    try:
        answer = http.post("/v2/repository/index")
        answer.raise_for_status()
        entries = answer.json()
    except (httpx2.HTTPError, ValueError):
        return None  # not up yet
    return [
        IndexEntry(entry["name"], entry.get("version", ""), entry.get("state", ""), entry.get("reason", ""))
        for entry in entries
    ]


def _is_ready(entries: Sequence[IndexEntry]) -> bool:
    wanted = [entry for entry in entries if entry.reason != UNLOADED]
    return bool(wanted) and all(entry.state == "READY" for entry in wanted)


def _raise_for_failed(index: Sequence[IndexEntry], waiting: Sequence[str], *, log: Path, after_s: float) -> None:
    loading = {entry.name for entry in index if entry.state in ("LOADING", "UNLOADING")}
    failed = [model for model in waiting if model not in loading]
    if not failed:
        return
    reasons = [f"{model}: {_reason(index, model, log)}" for model in failed]
    raise NotReady(f"model {', '.join(failed)}", after_s=after_s, reason="; ".join(reasons), hint=f"see {log}")


def _reason(index: Sequence[IndexEntry], model: str, log: Path) -> str:
    named = [entry.reason for entry in index if entry.name == model and entry.reason not in ("", UNLOADED)]
    return named[0] if named else failure_reason(log, model) or "the server gave no reason"


def _last_words(process: Process) -> str:
    return "the log ends with " + ("".join(process.tail(1)) or "nothing")
