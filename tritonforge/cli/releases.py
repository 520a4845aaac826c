"""`tritonforge releases`: what is known of each TensorRT-LLM release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from tritonforge.cli.output import json_option, plain, print_fields, print_json, print_line, print_table
from tritonforge.releases.backend import BackendLine, backend_line
from tritonforge.releases.build_options import (
    EVIDENCE,
    BuildOption,
    all_option_names,
    build_options,
    lines_with_option,
    what_replaced,
    where_option_exists,
)
from tritonforge.releases.table import Release, all_lines, all_releases, find_release

# What fits into the width of a terminal; --json has the rest.
BRIEF = {"tag": "tag", "Triton": "triton", "TensorRT": "tensorrt", "CUDA": "cuda", "driver": "driver"}
FULL = BRIEF | {"Python": "python"}


@click.command()
@click.argument("release", required=False)
@click.option("--options", "show_options", is_flag=True, help="Show the options of trtllm-build only.")
@click.option("--backend", "show_backend", is_flag=True, help="Show the parameters and tensors of RELEASE's backend.")
@json_option
def command(*, release: str | None, show_options: bool, show_backend: bool, as_json: bool) -> None:
    """List the known TensorRT-LLM releases, or what is known of RELEASE.

    With RELEASE: its containers, and the options that its trtllm-build takes, each with the lines that have it, its
    default, and how that is known.
    """
    if release is None:
        if show_backend:
            raise click.UsageError("--backend needs a RELEASE")
        _all(show_options=show_options, as_json=as_json)
        return
    found = find_release(release)
    shown: dict[str, object] = {"release": found.name, "line": found.line}
    if not show_options and not show_backend:
        shown["containers"] = found.containers
    if not show_backend:
        shown["options"] = [_as_json(option) for option in build_options(found).values()]
    if show_backend:
        shown["backend"] = backend_line(found)
    if as_json:
        print_json(shown)
        return
    if "containers" in shown:
        _print_containers([found], FULL)
    if "options" in shown:
        _print_options(found)
    if "backend" in shown:
        _print_backend(found, backend_line(found))


def _all(*, show_options: bool, as_json: bool) -> None:
    if show_options:
        names = all_option_names()
        if as_json:
            shown = [{"name": name, "lines": lines_with_option(name), "now": what_replaced(name)} for name in names]
            print_json({"lines": all_lines(), "options": shown})
        else:
            rows = [(name, where_option_exists(name), what_replaced(name)) for name in names]
            print_table(("option", "lines", "now"), rows, title="Options of trtllm-build")
    elif as_json:
        print_json([{"release": one.name, "line": one.line, "containers": one.containers} for one in all_releases()])
    else:
        _print_containers(all_releases(), BRIEF)


def _print_containers(releases: Sequence[Release], columns: Mapping[str, str]) -> None:
    pairs = [(release, container) for release in releases for container in release.containers]
    rows = [(one.name, *(getattr(container, field) for field in columns.values())) for one, container in pairs]
    print_table(("release", *columns), rows)
    for image in dict.fromkeys(container.image.replace(container.tag, "TAG") for _, container in pairs):
        print_line(f"image: {image}")


def _as_json(option: BuildOption) -> dict[str, object]:
    values, have = plain(option), lines_with_option(option.name)
    until = None if have[-1] == all_lines()[-1] else have[-1]  # none: the newest line has it
    return {**(values if isinstance(values, dict) else {}), "since": have[0], "until": until}


def _print_options(release: Release) -> None:
    options = build_options(release)
    rows = [
        (
            option.name,
            ", ".join(map(str, option.choices)) or option.type,
            _default(option),
            where_option_exists(option.name),
            option.evidence,
            _remark(option),
        )
        for option in options.values()
    ]
    title = f"Options of trtllm-build {release.name}"
    print_table(("option", "takes", "default", "lines", "evidence", "remark"), rows, title=title)
    for mark in dict.fromkeys(option.evidence for option in options.values()):
        print_line(f"{mark}: {EVIDENCE[mark]}")


def _default(option: BuildOption) -> str:
    if option.default_either:
        return " or ".join(map(str, option.default_either))
    return "" if option.default is None else str(option.default)


def _remark(option: BuildOption) -> str:
    remarks = [
        f"forge.yaml: {option.key}" if option.key else None,
        option.reserved,
        f"now {option.now}" if option.now else None,
        f"also {', '.join(option.aliases)}" if option.aliases else None,
        option.note,
    ]
    return "; ".join(remark for remark in remarks if remark)


def _print_backend(release: Release, line: BackendLine) -> None:
    print_fields({"TensorRT-LLM": release.name, "evidence": line.evidence, "source": line.source})
    parameters = [(one.name, one.default, one.source, one.meaning) for one in line.parameters]
    print_table(("parameter", "default", "filled from", "meaning"), parameters)
    both = (("input", line.inputs), ("output", line.outputs))
    tensors = [
        (kind, one.name, one.type, list(one.dims), "optional" if one.optional else "")
        for kind, side in both
        for one in side
    ]
    print_table(("side", "tensor", "type", "dims", ""), tensors)
