"""The real Triton server that the nvidia-pytriton wheel carries: where its parts are, and what it needs to run here.

The wheel's own Python API is not used. Its python backend comes with one stub program per Python version; Triton wants
the stub beside the backend's library, so a backend folder of our own is laid out for the running Python and kept.
"""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from tritonforge.errors import ServerError, ToolMissing
from tritonforge.places import UNSAFE_IN_SHELL
from tritonforge.staging import staged_folder

PACKAGE = "nvidia-pytriton"
INSTALL_HINT = "pip install 'tritonforge[embedded]'"
STUB = "triton_python_backend_stub"
# Those of the backend folder that is laid out for it.
BACKENDS = ("python",)
# From the wheel's platform tag, manylinux_2_35_x86_64.
MACHINE = "x86_64"
GLIBC = (2, 35)


@dataclass(frozen=True, slots=True)
class Installation:
    """The parts of an installed nvidia-pytriton wheel.

    Args:
        version: Version of the wheel.
        binary: The tritonserver program.
        python_backend: Folder with libtriton_python.so and triton_python_backend_utils.py.
        stub: The stub program for the running Python.
        libraries: Folder with the shared libraries that the wheel bundles.
    """

    version: str
    binary: Path
    python_backend: Path
    stub: Path
    libraries: Path


@dataclass(frozen=True, slots=True)
class Libpython:
    """The shared library that the stub embeds.

    Args:
        name: File name, for example ``libpython3.11.so.1.0``.
        folder: Folder of this interpreter's own copy, or None when only the system's copy was found.
    """

    name: str
    folder: Path | None


def find_installation() -> Installation:
    """The installed wheel.

    Raises:
        ServerError: This machine cannot run it.
        ToolMissing: It is not installed, or has no stub for this Python.
    """
    check_platform(platform.system(), platform.machine(), platform.libc_ver())
    spec = importlib.util.find_spec("pytriton")
    if spec is None or spec.origin is None:
        raise ToolMissing(PACKAGE, looked_in=sysconfig.get_path("purelib"), hint=INSTALL_HINT)
    package = Path(spec.origin).parent
    server = package / "tritonserver"
    found = Installation(
        version=importlib.metadata.version(PACKAGE),
        binary=server / "bin" / "tritonserver",
        python_backend=server / "backends" / "python",
        stub=server / "python_backend_stubs" / _python_version() / STUB,
        libraries=package.parent / "nvidia_pytriton.libs",
    )
    if not found.stub.exists():
        known = sorted(folder.name for folder in found.stub.parents[1].glob("3.*"))
        raise ToolMissing(
            f"a Triton python-backend stub for Python {_python_version()}",
            looked_in=str(found.stub.parents[1]),
            hint=f"use one of the Python versions that {PACKAGE} {found.version} has a stub for: {', '.join(known)}",
        )
    return found


def check_platform(system: str, machine: str, libc: tuple[str, str]) -> None:
    """Refuse a machine that the wheel's binaries cannot run on. Pure.

    Args:
        system: As `platform.system` gives it.
        machine: As `platform.machine` gives it.
        libc: As `platform.libc_ver` gives it.

    Raises:
        ServerError: With what was found and what is needed.
    """
    hint = f"run on Linux {MACHINE} with glibc {GLIBC[0]}.{GLIBC[1]} or newer (Debian 12, Ubuntu 22.04)"
    if system != "Linux" or machine != MACHINE:
        raise ServerError(f"the embedded Triton needs Linux on {MACHINE}, this is {system} on {machine}", hint=hint)
    name, version = libc
    if name != "glibc":
        raise ServerError(f"the embedded Triton needs glibc, this system has {name or 'another C library'}", hint=hint)
    numbers = tuple(int(part) for part in version.split(".")[:2])
    if numbers < GLIBC:
        raise ServerError(
            f"the embedded Triton needs glibc {GLIBC[0]}.{GLIBC[1]} or newer, this system has {version}", hint=hint
        )


def find_libpython() -> Libpython:
    """The shared libpython of this interpreter, or else the system's of the same minor version.

    Interpreters that were linked statically do not need one and often come without.

    Raises:
        ToolMissing: There is none.
    """
    name = f"libpython{_python_version()}.so.1.0"
    # LIBDIR is where the interpreter was built for; one that was moved since has its libraries below its prefix.
    folders = [Path(sysconfig.get_config_var("LIBDIR") or "/nonexistent"), Path(sys.base_prefix) / "lib"]
    for folder in folders:
        if (folder / name).exists():
            return Libpython(name, folder)
    if ctypes.util.find_library(f"python{_python_version()}") is not None:
        return Libpython(name, None)
    raise ToolMissing(
        name,
        looked_in=", ".join([*map(str, folders), "the system's library path"]),
        hint=f"apt-get install libpython{_python_version()}, or use a Python built with --enable-shared",
    )


def check_path(path: Path) -> None:
    """Refuse a path that the python backend cannot take: it starts its stub by a shell line without quoting. Pure.

    With such a path the stub ends at once and Triton 2.51 waits for it for ever.

    Raises:
        ServerError: The path has a blank or a character that a shell gives a meaning.
    """
    found = UNSAFE_IN_SHELL.search(str(path))
    if found is not None:
        raise ServerError(
            f"{path}: Triton's python backend cannot use a path with {found[0]!r} in it",
            hint="move or link it to a path without blanks and special characters",
        )


def library_path(installation: Installation, libpython: Libpython) -> str:
    """LD_LIBRARY_PATH for the server and its stubs.

    The interpreter's own libpython comes first: with the system's copy of another patch release the stub would run this
    environment's standard library on a different interpreter, and parts of it fail (multiprocessing among them).
    """
    inherited = os.environ.get("LD_LIBRARY_PATH")
    parts = [libpython.folder, installation.libraries, inherited]
    return ":".join(str(part) for part in parts if part)


def default_cache() -> Path:
    """Folder for what can be made again."""
    return Path.home() / ".cache" / "tritonforge"


def backend_directory(installation: Installation, cache: Path) -> Path:
    """The folder for ``--backend-directory``, made when it is not there yet.

    It is written beside its final place and renamed: a half-written one is never used, and two starts at the same time
    do not disturb each other.

    Raises:
        ServerError: The cache cannot be written, or its path cannot be used.
    """
    final = cache / "backends" / f"pytriton-{installation.version}-python{_python_version()}"
    check_path(final)
    if final.exists():
        return final
    try:
        with staged_folder(final) as folder:
            _lay_out(installation, folder)
    except OSError as error:
        if final.exists():  # another start was quicker, with the same content
            return final
        raise ServerError(
            f"{error.filename or final}: {error.strerror or error}", hint="choose another folder with --cache-folder"
        ) from error
    return final


def _lay_out(installation: Installation, folder: Path) -> None:
    backend = folder / "python"
    shutil.copytree(installation.python_backend, backend, ignore=shutil.ignore_patterns("__pycache__"))
    stub = backend / STUB
    shutil.copyfile(installation.stub, stub)
    stub.chmod(0o755)  # an unzipped wheel may have lost the run bit


def _python_version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"
