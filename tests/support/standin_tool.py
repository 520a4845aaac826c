"""The stand-in for trtllm-build as if pip had installed it on this machine, with the metadata of a release."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.support.standin_image import STANDIN, release_json


def install_standin(root: Path, release: str = "0.16.0", *, version: str | None = None) -> str:
    """Put a trtllm-build into a folder of its own.

    Args:
        root: Folder of the environment, made here.
        release: Release whose options it takes.
        version: Version that its package has; None for the release.

    Returns:
        The folder with the program, for PATH.
    """
    programs, packages = root / "bin", root / "packages"
    programs.mkdir(parents=True)
    metadata = packages / f"tensorrt_llm-{version or release}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: tensorrt_llm\nVersion: {version or release}\n")
    python = programs / "python3"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(packages))} exec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    (programs / "release.json").write_text(release_json(release))
    program = programs / "trtllm-build"
    program.write_text(f"#!{python}\n{STANDIN.read_text()}")
    program.chmod(0o755)
    return str(programs)
