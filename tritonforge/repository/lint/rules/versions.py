"""Version folders and the version policy."""

from __future__ import annotations

from collections.abc import Iterator

from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import ModelView, RepositoryView

MAX_VERSION = 2**63 - 1


def _has_a_version(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.text is None or model.versions:
        return
    files = [path.name for path in model.entries if path.name.isdecimal() and path.is_file()]
    found = f"; {files[0]} is a file" if files else ""
    yield Problem(
        f"there is no version folder{found}; Triton does not load a model without one, an ensemble neither",
        "add a folder named by a number, for example 1 (git does not keep empty folders: put a file in it)",
        path=model.folder,
    )


def _names_are_numbers(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.text is None:
        return
    for version in model.version_folders:
        name = version.path.name
        if version.number is None:
            why = "a leading zero" if name.startswith("0") else "a name that is not a number"
            yield Problem(
                f"folder {name} has {why}; Triton ignores it",
                "name it by its number, or move it out of the model folder",
                path=version.path,
            )
        elif abs(version.number) > MAX_VERSION:
            yield Problem(
                f"folder {name} is a number beyond 64 bits; it ends the whole server",
                "use a smaller number",
                path=version.path,
                severity=Severity.ERROR,
            )
        elif not version.is_exact:
            yield Problem(
                f"folder {name} counts as version {version.number}, because Triton reads a name only up to the first "
                f"character that is no digit; it then opens folder {version.number}, and without one the load fails "
                f"or never ends",
                "move it out of the model folder",
                path=version.path,
                severity=Severity.ERROR,
            )


def _policy_loads_something(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.versions and not model.loaded_versions:
        there = ", ".join(str(number) for number in model.versions)
        yield Problem(
            f"version_policy selects none of the versions that exist ({there}); nothing is loaded",
            "use version_policy { all {} }, latest { num_versions: 1 }, or specific with versions that exist",
            line=model.line("version_policy"),
        )


def _listed_versions_exist(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None  # rules that need a config are not asked without one
    for index, number in enumerate(model.config.version_policy.specific.versions):
        if number not in model.versions:
            yield Problem(
                f"version_policy lists version {number}, which has no folder; Triton logs it and loads the others",
                f"add folder {number}, or take the version off the list",
                line=model.line("version_policy", "specific", "versions", index),
            )


def _all_versions_are_loaded(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    loaded = model.loaded_versions
    idle = [number for number in model.versions if number not in loaded]
    if idle and loaded:
        given = model.line("version_policy")
        because = "version_policy" if given else "the default policy (latest, 1 version)"
        yield Problem(
            f"{because} does not load version {', '.join(map(str, idle))}",
            "set version_policy { all {} } if they should be served",
            line=given,
        )


VERSION_RULES = (
    ModelRule(
        "version-none",
        Severity.ERROR,
        "Each model needs at least one version folder named by a number.",
        _has_a_version,
        needs_config=False,
    ),
    ModelRule(
        "version-name",
        Severity.WARNING,
        "Triton reads version numbers as C does: 01 and v1 are ignored, 2_old counts as version 2.",
        _names_are_numbers,
        needs_config=False,
    ),
    ModelRule(
        "version-policy-empty",
        Severity.ERROR,
        "A policy that selects no existing version loads nothing. latest {} without num_versions means none.",
        _policy_loads_something,
    ),
    ModelRule(
        "version-missing",
        Severity.WARNING,
        "A listed version without a folder is only logged.",
        _listed_versions_exist,
    ),
    ModelRule(
        "version-idle",
        Severity.INFO,
        "Without a version_policy only the highest version is loaded.",
        _all_versions_are_loaded,
    ),
)
