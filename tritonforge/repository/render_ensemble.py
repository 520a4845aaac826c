"""Renders the layout `ensemble`: NVIDIA's models around each engine version, and the ensemble that clients call.

Triton has one config for all versions of an ensemble, so its steps cannot follow the version asked for, nor a weight.
Therefore every version has preprocessing, postprocessing and an ensemble of its own, whose names carry its number, and
the model's public name is an ensemble whose steps are those of the version with all the traffic. Moving the traffic
rewrites that one file; a new version touches nothing that is serving.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tritonforge.errors import RepositoryError
from tritonforge.releases.ensemble import POSTPROCESSING, PREPROCESSING, EnsembleLine, ensemble_line, newest_read_line
from tritonforge.releases.table import find_release
from tritonforge.repository.ensemble import (
    EnsembleContext,
    EnsembleNames,
    PartContext,
    ensemble_context,
    part_context,
    public_context,
    the_one_version,
)
from tritonforge.repository.files import write_text
from tritonforge.repository.layout import CONFIG_NAME, GATEWAY_VERSION
from tritonforge.repository.manifest import MANIFEST_NAME, Manifest, manifest_text
from tritonforge.repository.pbtxt import read_config
from tritonforge.repository.render import render_tree
from tritonforge.repository.routes import Routes, check_weights, routes_text
from tritonforge.repository.runtime_copy import compile_python, copy_runtime
from tritonforge.repository.serving import ServedVersion, write_served, write_served_into
from tritonforge.repository.templates import TemplateTree
from tritonforge.spec.model import ResolvedVersion
from tritonforge.spec.tensorrt_llm import TensorRtLlmEngineSpec

ENSEMBLE = "ensemble"
# Where preprocessing and postprocessing keep the tokenizer of their version, in the version folder. Not the name that a
# gateway's folder has: a folder with that counts as a gateway.
SERVED_FOLDER = "served"
RUNTIME_PARTS = ("ensemble", "gateway")  # the tokenizers are the gateway's
MANIFEST_KIND = "ensemble"


def render_parts(
    version: ResolvedVersion,
    served: ServedVersion,
    out: Path,
    *,
    manifest: Manifest | None = None,
    templates: TemplateTree | None = None,
) -> list[Path]:
    """Render preprocessing, postprocessing and ensemble of one version around its engine model.

    Args:
        version: What the spec asks for.
        served: The version with its tokenizer.
        out: Folder, in staging, that holds the rendered engine model and takes the others.
        manifest: What the version was made from; None leaves it out.
        templates: Where templates come from; the built-in ones when None.

    Returns:
        The model folders, those of the steps first.

    Raises:
        ConfigInvalid: The engine model needs a tensor that the ensemble of its release does not have.
        TemplateError: A template is wrong.
        PublishFailed: A file cannot be written.
    """
    names = EnsembleNames(version.model_name, version.number)
    engine = read_config(out / names.engine / CONFIG_NAME)
    line = _line_of(version)
    ensemble = ensemble_context(line, names, engine)
    folders = []
    for step in (PREPROCESSING, POSTPROCESSING):
        context = part_context(line, names, step, ensemble)
        folders.append(_render_part(step, context, names.model, served, out, templates))
    folders.append(render_tree(ENSEMBLE, ensemble, out, version=version.number, templates=templates))
    if manifest is not None:
        text = manifest_text(replace(manifest, kind=MANIFEST_KIND, files={}))
        for folder in folders:
            write_text(folder / str(version.number) / MANIFEST_NAME, text)
    return folders


def render_ensemble(
    model: str,
    served: Sequence[ServedVersion],
    out: Path,
    *,
    weights: Mapping[int, float],
    repository: Path,
    templates: TemplateTree | None = None,
) -> Path:
    """Render the ensemble that clients call, whose steps are those of the version with all the traffic.

    Args:
        model: Public name of the model.
        served: Every version that the traffic may be moved to, also those published before.
        out: Existing folder, in staging, that takes the model folder.
        weights: Split of the traffic by version number: one version has all of it.
        repository: Where the ensemble of that version is when it is not in `out`.
        templates: Where templates come from; the built-in ones when None.

    Returns:
        The model folder.

    Raises:
        RepositoryError: The weights are shared by several versions, name one that is not served, or one without an
            ensemble of its own.
        PublishFailed: A file cannot be written.
    """
    check_weights(model, weights, published=[version.number for version in served])
    context = _public(model, Routes(dict(weights), salt=model), (out, repository))
    folder = render_tree(ENSEMBLE, context, out, version=GATEWAY_VERSION, templates=templates)
    for version in served:
        write_served(model, version, folder)
    return folder


def repointed(model: str, routes: Routes, *, repository: Path, templates: TemplateTree | None = None) -> str:
    """The config of the ensemble that clients call, with the steps of the version that `routes` gives all traffic.

    Raises:
        RepositoryError: The weights are shared by several versions, or the version has no ensemble of its own.
    """
    context = _public(model, routes, (repository,))
    files = (templates or TemplateTree()).render(ENSEMBLE, context, version=GATEWAY_VERSION)
    return next(file.text for file in files if file.path.name == CONFIG_NAME)


def _line_of(version: ResolvedVersion) -> EnsembleLine:
    engine = version.engine
    return (
        ensemble_line(find_release(engine.release)) if isinstance(engine, TensorRtLlmEngineSpec) else newest_read_line()
    )


def _public(model: str, routes: Routes, places: Sequence[Path]) -> EnsembleContext:
    names = EnsembleNames(model, the_one_version(model, routes.weights))
    files = [place / names.pinned / CONFIG_NAME for place in places]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise RepositoryError(
            f"{model} version {names.version} was published without an ensemble ({names.pinned} is not there); it "
            f"cannot have the traffic of one",
            hint="build all versions of the model again with layout: ensemble and --replace",
        )
    return public_context(read_config(file), names, version=GATEWAY_VERSION, routes=routes_text(routes))


def _render_part(
    step: str, context: PartContext, model: str, served: ServedVersion, out: Path, templates: TemplateTree | None
) -> Path:
    folder = render_tree(f"{ENSEMBLE}_{step}", context, out, version=context.version, templates=templates)
    version_folder = folder / str(context.version)
    write_served_into(version_folder / SERVED_FOLDER / str(context.version), model, served)
    for part in RUNTIME_PARTS:
        copy_runtime(part, version_folder)
    compile_python(folder)
    return folder
