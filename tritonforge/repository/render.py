"""Renders the folders of one model: an engine model per version, and the gateway in front of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tritonforge.artifacts import EngineArtifact
from tritonforge.errors import ConfigInvalid
from tritonforge.repository.context import gateway_context
from tritonforge.repository.engine_source import NamedContext
from tritonforge.repository.files import place, write_text
from tritonforge.repository.kinds import build_context
from tritonforge.repository.layout import CONFIG_NAME, GATEWAY_VERSION
from tritonforge.repository.manifest import MANIFEST_NAME, Manifest, manifest_text
from tritonforge.repository.pbtxt import parse_config
from tritonforge.repository.routes import Routes, check_weights
from tritonforge.repository.runtime_copy import RUNTIME_PARTS, compile_python, copy_runtime
from tritonforge.repository.serving import ServedVersion, write_served
from tritonforge.repository.templates import RenderedFile, TemplateTree
from tritonforge.spec.model import ModelSpec, ResolvedVersion


def render_engine(
    version: ResolvedVersion,
    engine: EngineArtifact,
    out: Path,
    *,
    mount: str,
    manifest: Manifest | None = None,
    templates: TemplateTree | None = None,
    with_histograms: bool = False,
) -> Path:
    """Render the engine model of one version, complete with its engine files.

    Args:
        version: What the spec asks for.
        engine: The compiled engine; its files are hard-linked, or copied to another file system.
        out: Existing folder, in staging, that takes the model folder.
        mount: Absolute path of the repository as the server sees it.
        manifest: What the version was made from; the sizes of the engine files are added. None leaves it out.
        templates: Where templates come from; the built-in ones when None.
        with_histograms: The target server knows `model_metrics` (Triton 2.52 and later; the embedded one is 2.51).

    Returns:
        The model folder.

    Raises:
        TemplateError: A template is wrong, or there is none for this kind of engine.
        ConfigInvalid: The rendered config is not one that Triton could read.
        PublishFailed: A file cannot be written.
    """
    context = build_context(version, engine, mount=mount, with_histograms=with_histograms)
    folder = render_tree(engine.kind, context, out, version=version.number, templates=templates)
    version_folder = folder / str(version.number)
    for file in engine.files:
        place(engine.path / file, version_folder / file)
    _add_runtime(engine.kind, version_folder)
    if manifest is not None:
        sizes = {file: (version_folder / file).stat().st_size for file in engine.files}
        write_text(version_folder / MANIFEST_NAME, manifest_text(replace(manifest, files=sizes)))
    return folder


def render_gateway(
    model: ModelSpec,
    served: Sequence[ServedVersion],
    out: Path,
    *,
    weights: Mapping[int, float],
    templates: TemplateTree | None = None,
) -> Path:
    """Render the gateway of a model for all of its served versions.

    Args:
        model: The model.
        served: Every version that requests may be routed to, also those published before.
        out: Existing folder, in staging, that takes the model folder.
        weights: Split of the traffic by version number.
        templates: Where templates come from; the built-in ones when None.

    Returns:
        The model folder.

    Raises:
        RepositoryError: The weights name a version that is not served, are negative or all zero.
        TemplateError: A template is wrong.
        ConfigInvalid: The rendered config is not one that Triton could read.
        PublishFailed: A file cannot be written.
    """
    check_weights(model.name, weights, published=[version.number for version in served])
    routes = Routes(dict(weights), salt=model.name)
    context = gateway_context(model.name, routes, [version.limits for version in served])
    folder = render_tree("gateway", context, out, version=GATEWAY_VERSION, templates=templates)
    for version in served:
        write_served(model.name, version, folder)
    _add_runtime("gateway", folder / str(GATEWAY_VERSION))
    return folder


def render_tree(kind: str, context: NamedContext, out: Path, *, version: int, templates: TemplateTree | None) -> Path:
    """Render the templates of one kind of model into its folder.

    Args:
        kind: Folder of the templates.
        context: Their variables.
        out: Folder that takes the model folder.
        version: Name of the version folder.
        templates: Where templates come from; the built-in ones when None.

    Returns:
        The model folder.

    Raises:
        TemplateError: A template is wrong.
        ConfigInvalid: The rendered config is not one that Triton could read.
        PublishFailed: A file cannot be written.
    """
    files = (templates or TemplateTree()).render(kind, context, version=version)
    for file in files:
        if file.path.name == CONFIG_NAME:
            _check_config(file, context.name)
    folder = out / context.name
    for file in files:
        write_text(folder / file.path, file.text)
    return folder


def _check_config(file: RenderedFile, name: str) -> None:
    """Refuse a config that Triton's own protobuf does not read, before anything is written."""
    config = parse_config(file.text, file=f"{name}/{file.path} (from template {file.template})")
    if config.name != name:
        raise ConfigInvalid(
            f"{name}/{file.path} (from template {file.template})",
            f"name is {config.name!r}; expected {name!r}, the name of its folder",
        )


def _add_runtime(kind: str, version_folder: Path) -> None:
    if kind not in RUNTIME_PARTS:
        return
    copy_runtime(RUNTIME_PARTS[kind], version_folder)
    compile_python(version_folder.parent)
