"""Loading on a running server, after a look at whether what is to be loaded fits it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from tritonforge.client import Client
from tritonforge.errors import ClientError, TritonforgeError
from tritonforge.events import OnEvent, ignore
from tritonforge.formats.trtllm_engine import read_engine_folder, same_release
from tritonforge.pipeline.compatibility import (
    TENSORRT_LLM,
    Advice,
    EngineNeeds,
    ServerFacts,
    check_needs,
    refuse,
)
from tritonforge.pipeline.machine import Machine
from tritonforge.pipeline.needs import needs_of, planned_needs
from tritonforge.pipeline.plan import BuildOptions, ModelPlan
from tritonforge.pipeline.served import LOOPBACK, host_of, is_at, repository_of
from tritonforge.repository.layout import PublishedVersion, find_version, split_engine_model_name
from tritonforge.server.embedded import BACKENDS
from tritonforge.server.state import running_server
from tritonforge.spec.load import LoadedSpec


def load(
    client: Client, model: str, *, repository: Path | None, timeout_s: float | None = None, on_event: OnEvent = ignore
) -> None:
    """Load a model on a running server.

    Args:
        client: The server.
        model: Name of a Triton model.
        repository: The repository that it serves, as far as that is at hand here; None takes that of a server which
            was started here, and else checks nothing.
        timeout_s: Seconds that the server may take; the client's own limit when None.
        on_event: Called with what could not be checked.

    Raises:
        EngineMismatch: The engine does not fit the server or its GPU; nothing was loaded.
        ClientError: The server refused it, with its reason.
    """
    repository = repository or repository_of(client.url)
    if repository is None and split_engine_model_name(model) is not None:
        on_event(
            f"note: whether {model} fits the server was not checked, for its repository is not known: give it with "
            f"--repository"
        )
    elif repository is not None:
        for version in engines_of(repository, [model]):
            facts = facts_of(client, repository, needs_of(version))
            for note in check_version(version, facts, Advice(repository)):
                on_event(f"note: {note}")
    client.load(model, timeout_s=timeout_s)


def engines_of(repository: Path, models: Collection[str]) -> Iterator[PublishedVersion]:
    """Those of some Triton models that are engines which tritonforge published."""
    for model in models:
        parts = split_engine_model_name(model)
        version = None if parts is None else find_version(repository, *parts)
        if version is not None:
            yield version


def check_version(version: PublishedVersion, server: ServerFacts, advice: Advice) -> tuple[str, ...]:
    """Refuse a version, published or staged, that cannot run on a server; see `check_needs`.

    Raises:
        EngineMismatch: It does not fit, or its engine is not the one of its manifest.
    """
    needs = needs_of(version)
    if needs.kind == TENSORRT_LLM:
        _check_files(version, needs, advice)
    return check_needs(needs, server, advice)


def refuse_unfit(loaded: LoadedSpec, plans: Sequence[ModelPlan], options: BuildOptions) -> tuple[str, ...]:
    """Refuse a build for a server that could not run what is built, before hours go into it.

    Returns:
        What could not be checked, one sentence each.

    Raises:
        EngineMismatch: A version would not fit.
        ClientError: The address is not one.
    """
    needs = [planned_needs(loaded, version) for plan in plans for version in plan.work]
    if options.server is None or not needs:
        return ()
    advice = Advice(loaded.repository, loaded.path)
    with Client(options.server) as client:
        return tuple(
            note for one in needs for note in check_needs(one, facts_of(client, loaded.repository, one), advice)
        )


def facts_of(client: Client, repository: Path, needs: EngineNeeds) -> ServerFacts:
    """What is known of a running server, as far as it matters for an engine.

    Args:
        client: The server.
        repository: The repository that it serves.
        needs: What the engine needs.
    """
    address = running_server(repository)
    is_embedded = address is not None and is_at(client.url, address)
    sees_our_gpus = needs.kind == TENSORRT_LLM and not is_embedded and host_of(client.url) in LOOPBACK
    return ServerFacts(
        triton=None if needs.release is None else _triton_of(client),
        backends=BACKENDS if is_embedded else None,
        gpus=Machine().gpus if sees_our_gpus else (),
    )


def _check_files(version: PublishedVersion, needs: EngineNeeds, advice: Advice) -> None:
    """The engine itself says which release built it."""
    rebuild = f"build it again: {advice.rebuild(needs)}"
    try:
        built_by = read_engine_folder(version.folder).version
    except TritonforgeError as error:
        refuse(needs, error.message, hint=rebuild)
    if needs.release is not None and not same_release(built_by, needs.release):
        problem = f"its engine was built by TensorRT-LLM {built_by}; its manifest says {needs.release}"
        refuse(needs, problem, hint=rebuild)


def _triton_of(client: Client) -> str | None:
    try:
        return client.metadata().version or None
    except ClientError:
        return None  # what is the matter is said when it is asked to load
