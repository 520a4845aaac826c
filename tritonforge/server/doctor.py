"""What this machine can do: one check a function, each with its finding and its fix."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tritonforge.checks import FAIL, OK, WARN, Check
from tritonforge.errors import ServerError, ToolMissing
from tritonforge.server.embedded import INSTALL_HINT, check_platform, find_installation, find_libpython
from tritonforge.server.options import LOOPBACK, ServerOptions
from tritonforge.server.ports import is_free

# The embedded server needs numpy 1.26, which has wheels for these two; older ones lack parts of the language.
PYTHONS = ((3, 11), (3, 12))
GIB = 1024**3
# A 135 M parameter model takes about 1 GiB to convert, build and serve; 7 B parameters in int8 take about 10 GiB.
LITTLE_MEMORY_BYTES = 2 * GIB
SOME_MEMORY_BYTES = 8 * GIB
LITTLE_DISK_BYTES = 2 * GIB
SOME_DISK_BYTES = 20 * GIB
CPU_FLAGS = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16")


def examine(folder: Path) -> list[Check]:
    """All checks.

    Args:
        folder: Where models will be kept; its disk is looked at.
    """
    packages = [
        _package("openvino", needed_for="the embedded engine", status=FAIL, fix=INSTALL_HINT),
        _package("openvino-genai", needed_for="the embedded engine", status=FAIL, fix=INSTALL_HINT),
        _package("gguf", needed_for="import-gguf", status=WARN, fix="pip install 'tritonforge[gguf]'"),
    ]
    return [
        _python(sys.version_info[:3]),
        _platform(),
        _libpython(),
        _server(),
        *packages,
        *_ports(),
        _memory(Path("/proc/meminfo")),
        _disk(folder),
        _cpu(Path("/proc/cpuinfo")),
    ]


def _python(version: tuple[int, ...]) -> Check:
    shown = ".".join(map(str, version))
    if version[:2] not in PYTHONS:
        usable = " or ".join(f"{major}.{minor}" for major, minor in PYTHONS)
        return Check("python", FAIL, shown, f"use Python {usable}")
    return Check("python", OK, f"{shown} at {sys.executable}")


def _platform() -> Check:
    def look() -> str:
        check_platform(platform.system(), platform.machine(), platform.libc_ver())
        return f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}"

    return _attempt("platform", look)


def _libpython() -> Check:
    try:
        found = find_libpython()
    except ToolMissing as error:
        return Check("libpython", FAIL, error.message, error.hint or "")
    if found.folder is None:
        detail = f"{found.name} is the system's, which may be of another patch release than {platform.python_version()}"
        return Check("libpython", WARN, detail, "use a Python built with --enable-shared, such as the system's own")
    return Check("libpython", OK, str(found.folder / found.name))


def _server() -> Check:
    return _attempt("nvidia-pytriton", lambda: f"{find_installation().version}, with the Triton server")


def _attempt(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, OK, look())
    except (ServerError, ToolMissing) as error:
        return Check(name, FAIL, error.message, error.hint or "")


def _package(name: str, *, needed_for: str, status: str, fix: str) -> Check:
    try:
        return Check(name, OK, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Check(name, status, f"not installed; {needed_for} needs it", fix)


def _ports() -> list[Check]:
    defaults = ServerOptions()
    ports = {
        "--grpc-port": defaults.grpc_port,
        "--http-port": defaults.http_port,
        "--metrics-port": defaults.metrics_port,
    }
    return [_port(option, port) for option, port in ports.items()]


def _port(option: str, port: int) -> Check:
    if is_free(port, host=LOOPBACK):
        return Check(f"port {port}", OK, "free")
    return Check(f"port {port}", WARN, "in use", f"stop what uses it, or serve with {option} 0")


def _memory(meminfo: Path) -> Check:
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="utf-8").splitlines())
        available_bytes = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return Check("memory", WARN, f"cannot be read from {meminfo}")
    detail = f"{available_bytes / GIB:.1f} GiB available"
    if available_bytes < LITTLE_MEMORY_BYTES:
        return Check("memory", FAIL, detail, f"free memory: at least {LITTLE_MEMORY_BYTES // GIB} GiB are needed")
    if available_bytes < SOME_MEMORY_BYTES:
        return Check("memory", WARN, detail, "enough for small models only")
    return Check("memory", OK, detail)


def _disk(folder: Path) -> Check:
    existing = next(path for path in [folder.absolute(), *folder.absolute().parents] if path.exists())
    free_bytes = shutil.disk_usage(existing).free
    detail = f"{free_bytes / GIB:.1f} GiB free at {existing}"
    if not os.access(existing, os.W_OK):
        return Check("disk", FAIL, f"{existing} cannot be written", "choose another folder, or change its permissions")
    if free_bytes < LITTLE_DISK_BYTES:
        return Check("disk", FAIL, detail, f"free disk space: at least {LITTLE_DISK_BYTES // GIB} GiB are needed")
    if free_bytes < SOME_DISK_BYTES:
        return Check("disk", WARN, detail, "enough for small models only")
    return Check("disk", OK, detail)


def _cpu(cpuinfo: Path) -> Check:
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Check("cpu", WARN, f"cannot be read from {cpuinfo}")
    flags = next((line.split(":", 1)[1].split() for line in text.splitlines() if line.startswith("flags")), [])
    found = [flag for flag in CPU_FLAGS if flag in flags]
    detail = f"{os.cpu_count()} cores, {' '.join(found) or 'none of ' + ' '.join(CPU_FLAGS)}"
    if "avx2" not in flags:
        return Check("cpu", WARN, detail, "the embedded engine will be slow without AVX2")
    return Check("cpu", OK, detail)
