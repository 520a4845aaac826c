"""What a TensorRT-LLM release takes of a converted checkpoint: rules kept as data in ``data/checkpoint_rules.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tritonforge.releases.files import read_data
from tritonforge.releases.table import Release, version_key

Facts = Mapping[str, object]
_FILE = "checkpoint_rules"


@dataclass(frozen=True, slots=True)
class CheckpointRule:
    """Something that releases do with a kind of checkpoint.

    Args:
        name: What it is about.
        effect: ``refuse`` (a conversion is refused) or ``note`` (its user is told).
        when: Facts that must all hold; a tuple holds alternatives.
        since: First line that it holds for; None: the first known one.
        until: First line that it no longer holds for; None: it holds to this day.
        text: The reason or the note, with values in braces.
        evidence: How it is known: ``run``, ``read``, ``inferred`` or ``memory``.
    """

    name: str
    effect: str
    when: Mapping[str, tuple[object, ...]]
    since: str | None
    until: str | None
    text: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the rules say of one conversion.

    Args:
        refusals: Why it cannot be.
        notes: What its user should know.
    """

    refusals: tuple[str, ...]
    notes: tuple[str, ...]


def checkpoint_rules() -> tuple[CheckpointRule, ...]:
    """Every rule, in the order of the file."""
    return tuple(_rule(row) for row in read_data(_FILE)["rules"])


def judge(release: Release, facts: Facts, values: Mapping[str, object]) -> Verdict:
    """Apply the rules of a release to a conversion.

    Args:
        release: The release that will read the checkpoint.
        facts: What conditions ask for; the file lists them.
        values: What stands in texts, beside the release.
    """
    found = [rule for rule in checkpoint_rules() if _in_lines(release, rule.since, rule.until) and _holds(rule, facts)]
    texts = [(rule.effect, rule.text.format(release=release.name, **values)) for rule in found]
    refusals = tuple(text for effect, text in texts if effect == "refuse")
    return Verdict(refusals, tuple(text for effect, text in texts if effect == "note"))


def config_features(release: Release) -> frozenset[str]:
    """The features that config.json of a release has.

    Args:
        release: The release that will read it.
    """
    rows = read_data(_FILE)["config"]
    return frozenset(row["feature"] for row in rows if _in_lines(release, row.get("since"), row.get("until")))


def _rule(row: Mapping[str, Any]) -> CheckpointRule:
    when = {fact: tuple(value) if isinstance(value, list) else (value,) for fact, value in row["when"].items()}
    return CheckpointRule(
        row["name"], row["effect"], when, row.get("since"), row.get("until"), row["text"], row["evidence"]
    )


def _in_lines(release: Release, since: str | None, until: str | None) -> bool:
    line = version_key(release.line)
    return (since is None or line >= version_key(since)) and (until is None or line < version_key(until))


def _holds(rule: CheckpointRule, facts: Facts) -> bool:
    return all(facts[fact] in values for fact, values in rule.when.items())
