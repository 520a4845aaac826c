"""The image of the stand-in for trtllm-build: this interpreter, what it needs, and the program. No network."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tritonforge.releases.build_options import build_options
from tritonforge.releases.table import find_release

STANDIN = Path(__file__).parent / "standin" / "trtllm_build.py"
FOLDER = "/opt/standin"
SHELL = "/bin/sh"
# What the program imports, and what argparse and tracebacks do when they are needed.
MODULES = (
    "argparse, copy, json, linecache, locale, os, pathlib, shutil, signal, sys, textwrap, time, tokenize, traceback"
)


def release_json(release: str) -> str:
    """What the stand-in has to know of the release that it stands for."""
    options = build_options(find_release(release))
    fields = {
        name: {"type": one.type, "choices": one.choices, "default": one.default, "aliases": one.aliases}
        for name, one in options.items()
    }
    return json.dumps({"name": release, "options": fields})


def image_tar(release: str) -> bytes:
    """A root file system whose trtllm-build stands for one release."""
    program = f"#!{_interpreter()} -IS\n{STANDIN.read_text()}"
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        files = _files_of_python()
        _add(tar, "tmp", None, mode=0o1777)
        for folder in _parents((Path(FOLDER, "trtllm-build"), *files)):
            _add(tar, str(folder), None, mode=0o755)
        _add(tar, f"{FOLDER}/trtllm-build", program.encode(), mode=0o755)
        _add(tar, f"{FOLDER}/release.json", release_json(release).encode(), mode=0o644)
        with tempfile.TemporaryDirectory() as folder:
            for path in files:
                tar.add(_stripped(path.resolve(), Path(folder)), str(path), recursive=False, filter=_readable)
    return content.getvalue()


def _parents(paths: Iterable[Path]) -> list[Path]:
    """Their folders, outer ones first; what makes them on the way would give them to root alone."""
    return sorted({folder for path in paths for folder in path.parents if folder != Path("/")})


def _interpreter() -> str:
    return str(Path(sys._base_executable).resolve())


@cache
def _files_of_python() -> tuple[Path, ...]:
    """The interpreter and a shell, their shared libraries, and the modules of its library that the program imports."""
    report = (
        f"import {MODULES}\nfor module in list(sys.modules.values()):\n  print(getattr(module, '__file__', None) or '')"
    )
    asked = subprocess.run(
        [_interpreter(), "-IS", "-c", report], capture_output=True, text=True, timeout=60, check=True
    )
    modules = {Path(line) for line in asked.stdout.splitlines() if line.startswith("/")}
    landmark = Path(json.__file__).parents[1] / "os.py"
    programs = [_interpreter(), SHELL, *(str(path) for path in modules if path.suffix == ".so")]
    linked = subprocess.run(["ldd", *programs], capture_output=True, text=True, timeout=60, check=True).stdout
    libraries = {Path(path) for path in re.findall(r"(/\S+\.so[.\d]*) \(0x", linked)}
    return tuple(sorted({Path(_interpreter()), Path(SHELL), landmark, *modules, *libraries}))


def _stripped(path: Path, folder: Path) -> Path:
    """A library without what only debuggers read, if that can be taken out: every container gets a copy of it."""
    if ".so" not in path.name or shutil.which("strip") is None:
        return path
    done = subprocess.run(["strip", "-o", folder / path.name, path], capture_output=True, timeout=60, check=False)
    return folder / path.name if done.returncode == 0 else path


def _add(tar: tarfile.TarFile, name: str, content: bytes | None, *, mode: int) -> None:
    entry = tarfile.TarInfo(name.lstrip("/"))
    entry.mode = mode
    if content is None:
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
    else:
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))


def _readable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.mode |= 0o555
    return entry
