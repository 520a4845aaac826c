"""Compiled versions → the repository and, when one is told, a running server: one transaction per model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritonforge.client import Client
from tritonforge.errors import RepositoryError
from tritonforge.events import OnEvent
from tritonforge.pipeline.compatibility import Advice
from tritonforge.pipeline.compile import CompiledVersion
from tritonforge.pipeline.damage import damage_of
from tritonforge.pipeline.live import LiveServer
from tritonforge.pipeline.load import check_version, facts_of
from tritonforge.pipeline.needs import needs_of
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.pipeline.published import kept_versions
from tritonforge.pipeline.weights import weights_after, weights_to_keep
from tritonforge.repository.layout import engine_model_name, find_version
from tritonforge.repository.lint import Finding, Severity, lint
from tritonforge.repository.publish import Transaction
from tritonforge.repository.render import render_engine, render_gateway
from tritonforge.repository.render_ensemble import render_ensemble, render_parts
from tritonforge.repository.serving import ServedVersion
from tritonforge.repository.traffic import published_versions
from tritonforge.spec.engine import TextEngineSpec
from tritonforge.spec.layout import GATEWAY
from tritonforge.spec.load import LoadedSpec
from tritonforge.spec.model import ModelSpec


def publish_versions(
    loaded: LoadedSpec,
    model: ModelSpec,
    compiled: Sequence[CompiledVersion],
    options: BuildOptions,
    *,
    on_event: OnEvent,
) -> None:
    """Publish new versions of a model and the gateway that knows them, or nothing.

    Args:
        loaded: The spec.
        model: The model.
        compiled: Its new versions.
        options: Whether published versions may be replaced, and the server that takes the result.
        on_event: Called with one line per step.

    Raises:
        RepositoryError: Another build has published one of the versions otherwise, or what was rendered does not pass
            lint; nothing was changed.
        PublishFailed: Something could not be written, or the server did not take it; everything is as before.
    """
    numbers = [item.version.number for item in compiled]
    with Transaction(
        loaded.repository,
        purpose=f"build {model.name} {numbers}",
        on_wait=lambda holder: on_event(f"waiting for {holder or 'another writer'}"),
    ) as transaction:
        fresh = [item for item in compiled if not _came_first(loaded.repository, item, options, on_event)]
        if not fresh:
            return
        staged = _render_model(loaded, model, fresh, transaction.staging, options, on_event)
        _refuse_findings(lint(transaction.staging, beside=loaded.repository))
        on_event(f"{model.name}: publishing {', '.join(folder.name for folder in staged[:-1])}")
        if options.server is None:
            transaction.publish(staged)
        else:
            _publish_live(transaction, loaded, model, fresh, staged, server=options.server, on_event=on_event)


def _came_first(repository: Path, item: CompiledVersion, options: BuildOptions, on_event: OnEvent) -> bool:
    """Whether another build has published the same version while this one was compiled."""
    version, mine = item.version, item.manifest
    try:
        published = find_version(repository, version.model_name, version.number)
    except RepositoryError:
        if options.replace:
            return False
        raise
    if published is None:
        return False
    theirs = published.manifest
    is_same = (theirs.checkpoint_digest, theirs.spec_digest) == (mine.checkpoint_digest, mine.spec_digest)
    if is_same and not (options.replace and damage_of(repository, published)):
        on_event(f"{version.model_name} version {version.number}: another build has published it meanwhile")
        return True
    if not options.replace:
        raise RepositoryError(
            f"{version.model_name} version {version.number}: another build has published it with other settings",
            hint="build again to see what differs",
        )
    return False


def _render_model(
    loaded: LoadedSpec,
    model: ModelSpec,
    compiled: Sequence[CompiledVersion],
    staging: Path,
    options: BuildOptions,
    on_event: OnEvent,
) -> list[Path]:
    """Engine models, what the layout puts around them, then the model that clients call: the order of publishing."""
    mount = loaded.spec.mount or str(loaded.repository)
    engines = [
        render_engine(item.version, item.engine, staging, mount=mount, manifest=item.manifest) for item in compiled
    ]
    fresh = {item.version.number: ServedVersion.of(item.version, item.engine, item.tokenizer) for item in compiled}
    kept = kept_versions(loaded.repository, model, fresh, replace=options.replace)
    for number in kept.dropped:
        on_event(f"warning: {model.name} version {number} is damaged and not in the spec; the {model.layout} drops it")
    served = {**kept.versions, **fresh}
    in_order = [served[number] for number in sorted(served)]
    # Read again: others may have moved the traffic meanwhile. New versions get theirs once they are proved.
    in_force = weights_to_keep(loaded.repository, model.name, served, replace=options.replace)
    if in_force is None and published_versions(loaded.repository, model.name):
        on_event(f"warning: {model.name}: the weights in force cannot be read; the spec's traffic counts")
    weights = weights_after(model, in_force, list(fresh), from_spec=False)
    if model.layout == GATEWAY:
        return [*engines, render_gateway(model, in_order, staging, weights=weights)]
    parts = [
        part
        for item in compiled
        for part in render_parts(item.version, fresh[item.version.number], staging, manifest=item.manifest)
    ]
    public = render_ensemble(model.name, in_order, staging, weights=weights, repository=loaded.repository)
    return [*engines, *parts, public]


def _publish_live(
    transaction: Transaction,
    loaded: LoadedSpec,
    model: ModelSpec,
    compiled: Sequence[CompiledVersion],
    staged: Sequence[Path],
    *,
    server: str,
    on_event: OnEvent,
) -> None:
    with Client(server) as client:
        _refuse_unfit(client, transaction.staging, loaded, compiled, on_event)
        engines = [engine_model_name(model.name, item.version.number) for item in compiled]
        parts = [folder.name for folder in staged[:-1] if folder.name not in engines]
        texts = [item.version.number for item in compiled if isinstance(item.version.engine, TextEngineSpec)]
        live = LiveServer(client, gateway=model.name, engines=engines, parts=parts, text_versions=texts)

        def apply() -> None:
            live.take()
            for item in compiled:
                live.run_tests(model.tests, item.version.number, layout=model.layout)

        transaction.publish(staged, apply=apply, undo=live.take_back)
    on_event(f"{model.name}: loaded at {server}; {len(model.tests) * len(compiled)} of its tests asked and passed")


def _refuse_unfit(
    client: Client, staging: Path, loaded: LoadedSpec, compiled: Sequence[CompiledVersion], on_event: OnEvent
) -> None:
    """What the server or its GPU cannot run is found before anything is put in place or loaded."""
    advice = Advice(loaded.repository, loaded.path)
    for item in compiled:
        staged = find_version(staging, item.version.model_name, item.version.number)
        if staged is not None:
            facts = facts_of(client, loaded.repository, needs_of(staged))
            for note in check_version(staged, facts, advice):
                on_event(f"note: {note}")


def _refuse_findings(findings: Sequence[Finding]) -> None:
    """What lint calls an error would be refused by the server: it is found before anything is published."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        lines = "".join(f"\n  {found.code}: {found.path}:{found.line or 1}: {found.message}" for found in errors)
        raise RepositoryError(f"what was rendered does not pass lint:{lines}", hint=errors[0].fix)
