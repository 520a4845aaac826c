"""`tritonforge build`: convert, compile, render, lint and publish what forge.yaml asks for."""

from __future__ import annotations

from pathlib import Path

import click

from tritonforge.cli.connection import grpc_url_option, server_of
from tritonforge.cli.output import json_option, print_json, print_line, print_table, say
from tritonforge.cli.progress import progress_bar
from tritonforge.launch.command import Command
from tritonforge.pipeline.build import BuildResult, build_spec
from tritonforge.pipeline.plan import BuildOptions
from tritonforge.pipeline.preview import Preview, preview_spec
from tritonforge.spec.load import load_spec


@click.command()
@click.option(
    "-f",
    "--file",
    "path",
    type=click.Path(path_type=Path),
    default=Path("forge.yaml"),
    show_default=True,
    help="The specification.",
)
@click.option("--model", help="Build only this model.")
@click.option("--version", type=click.IntRange(min=1), help="Build only this version.")
@click.option("--replace", is_flag=True, help="Rebuild published versions that differ from the spec, in place.")
@click.option("--traffic", is_flag=True, help="Give published models the spec's traffic as well.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; write nothing.")
@click.option("--explain", is_flag=True, help="Say what the build cache has of each version, and what differs if not.")
@click.option("--no-cache", is_flag=True, help="Convert and compile everything; leave the build cache alone.")
@click.option(
    "--cache-folder",
    "cache",
    type=click.Path(path_type=Path),
    envvar="TRITONFORGE_CACHE",
    show_envvar=True,
    help="Folder of the build cache, which repositories can share; without it one beside the repository.",
)
@click.option("--pull", is_flag=True, help="Download the image that an engine is built in when it is not there.")
@click.option("--no-load", is_flag=True, help="Publish on disk only, also when a server serves the repository.")
@grpc_url_option
@json_option
def command(
    path: Path,
    model: str | None,
    version: int | None,
    url: str | None,
    cache: Path | None,
    *,
    replace: bool,
    traffic: bool,
    dry_run: bool,
    explain: bool,
    no_cache: bool,
    pull: bool,
    no_load: bool,
    as_json: bool,
) -> None:
    """Convert, compile, render, lint and publish what forge.yaml asks for.

    A server that serves the repository takes the new versions at once; without one they are published on disk.

    The traffic in forge.yaml is what a model starts with. Once it is published, new versions get nothing until the
    traffic is moved to them: with `tritonforge traffic`, or here with --traffic.
    """
    loaded = load_spec(path)
    options = BuildOptions(
        model,
        version,
        replace=replace,
        traffic=traffic,
        server=None if no_load else server_of(loaded.repository, url),
        cache=None if cache is None else cache.absolute(),
        use_cache=not no_cache,
        pull=pull,
    )
    if dry_run or explain:
        _show_preview(preview_spec(loaded, options), explain=explain, whole=dry_run, as_json=as_json)
    if not dry_run:
        with progress_bar("converting", wanted=not as_json) as on_progress:
            result = build_spec(loaded, options, on_event=say, on_progress=on_progress)
        print_json(result) if as_json else _show(result, no_load=no_load)


def _show(result: BuildResult, *, no_load: bool) -> None:
    rows = [
        (
            v.model,
            v.version,
            v.precision,
            v.state,
            v.cache,
            _megabytes(v.weights_bytes),
            "" if v.took_s is None else f"{v.took_s} s",
        )
        for v in result.versions
    ]
    columns = ("model", "version", "precision", "state", "cache", "weights", "took")
    print_table(columns, rows, title=str(result.repository))
    if (cache := result.cache) is not None:
        say(f"build cache: {cache.entries} entries, {_megabytes(cache.size_bytes)}, in {cache.folder}")
    if result.server is not None or all(version.state == "unchanged" for version in result.versions):
        return
    if no_load:
        say("published on disk; a server that serves it has not been told (tritonforge load)")
    elif result.start == (ours := f"tritonforge serve {result.repository}",):
        say(f"published on disk; no server is running (start one: {ours})")
    else:
        say("published on disk; no server is running. Start one; a container needs the packages of the gateway, too:")
        for line in result.start:
            say(f"    {line}")


def _show_preview(preview: Preview, *, explain: bool, whole: bool, as_json: bool) -> None:
    if explain:
        _explain(preview)
    if whole:
        print_json(preview) if as_json else _show_plan(preview)


def _show_plan(preview: Preview) -> None:
    rows = [(v.engine_model, v.precision, v.state) for v in preview.versions]
    print_table(("engine model", "precision", "state"), rows, title="versions")
    for command in preview.commands:
        where = "here" if command.image is None else f"in {command.image}"
        print_line(f"# {command.version}, {where}, GPUs {_numbers(command.gpus)}, in folder {command.cwd}")
        if command.image is not None:
            print_line(f"#   as user {command.user}, with {command.shm_bytes / 2**30:g} GiB of shared memory")
        for place, host in command.mounts.items():
            print_line(f"#   {place} is {host}{' (read only)' if place in command.read_only else ''}")
        print_line(str(Command(command.argv, env=command.env)))
    for file in preview.files:
        print_line(file)
    for note in preview.notes:
        say(f"note: {note}")


def _explain(preview: Preview) -> None:
    """On standard error, as all that is not the result."""
    needed = {look.label for look in preview.cache}
    for version in preview.versions:
        label = f"{version.model} version {version.version}"
        if version.state == "unchanged":
            say(f"{label}: published as asked for; nothing is made")
        elif label not in needed:
            say(f"{label}: the build cache has no part in it, or its checkpoint has to be imported first")
    for look in preview.cache:
        why = look.reason if look.nearest is None else f"against that of {look.nearest}, changed:"
        say(f"{look.label}: {look.noun}: {'hit' if look.hit else 'miss'} ({look.key}): {why}")
        for change in look.changes:
            say(f"    {change}")


def _numbers(gpus: tuple[int, ...] | str | None) -> str:
    return ", ".join(map(str, gpus)) if isinstance(gpus, tuple) else str(gpus)


def _megabytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1e6:,.1f} MB"
