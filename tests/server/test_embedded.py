import ctypes.util
import os
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tritonforge.errors import ServerError, ToolMissing
from tritonforge.server.embedded import (
    STUB,
    Installation,
    Libpython,
    backend_directory,
    check_path,
    check_platform,
    find_installation,
    find_libpython,
    library_path,
)

GLIBC = ("glibc", "2.36")


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    wheel = tmp_path / "wheel"
    (wheel / "python" / "__pycache__").mkdir(parents=True)
    (wheel / "python" / "libtriton_python.so").write_bytes(b"library")
    (wheel / "python" / "triton_python_backend_utils.py").write_text("utils")
    (wheel / "python" / "__pycache__" / "x.pyc").write_bytes(b"")
    stub = wheel / STUB
    stub.write_bytes(b"stub")
    stub.chmod(0o644)
    return Installation("0.7.0", wheel / "tritonserver", wheel / "python", stub, wheel / "libs")


@pytest.mark.parametrize(
    ("system", "machine", "libc", "found"),
    [
        ("Darwin", "arm64", ("", ""), "Darwin on arm64"),
        ("Linux", "aarch64", GLIBC, "Linux on aarch64"),
        ("Linux", "x86_64", ("", ""), "another C library"),
        ("Linux", "x86_64", ("glibc", "2.31"), "this system has 2.31"),
    ],
)
def test_a_machine_that_cannot_run_it_is_named(system: str, machine: str, libc: tuple[str, str], found: str):
    with pytest.raises(ServerError, match=found) as caught:
        check_platform(system, machine, libc)
    assert "glibc 2.35 or newer" in (caught.value.hint or "")


def test_debian_12_and_newer_are_accepted():
    check_platform("Linux", "x86_64", GLIBC)
    check_platform("Linux", "x86_64", ("glibc", "2.101"))


def test_a_missing_wheel_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pytriton", None)  # Python's own way to say that there is no such module
    with pytest.raises(ToolMissing, match="nvidia-pytriton is not installed") as caught:
        find_installation()
    assert caught.value.hint == "pip install 'tritonforge[embedded]'"


def test_the_installed_wheel_has_all_its_parts():
    found = find_installation()
    for path in (found.binary, found.python_backend / "libtriton_python.so", found.stub, found.libraries):
        assert path.exists()


def test_a_missing_libpython_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: str(tmp_path))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    monkeypatch.setattr(ctypes.util, "find_library", lambda name: None)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    with pytest.raises(ToolMissing, match=rf"libpython{version}\.so\.1\.0 is not installed") as caught:
        find_libpython()
    assert f"apt-get install libpython{version}" in (caught.value.hint or "")


def test_the_interpreters_own_libpython_is_preferred(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    name = f"libpython{sys.version_info.major}.{sys.version_info.minor}.so.1.0"
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: str(tmp_path))
    assert find_libpython() == Libpython(name, tmp_path)


def test_own_libpython_comes_before_the_bundled_libraries(installation: Installation, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/inherited")
    path = library_path(installation, Libpython("libpython", Path("/own")))
    assert path == f"/own:{installation.libraries}:/inherited"


def test_a_system_libpython_adds_no_folder(installation: Installation, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    assert library_path(installation, Libpython("libpython", None)) == str(installation.libraries)


def test_the_stub_lies_beside_the_library_and_can_be_run(installation: Installation, tmp_path: Path):
    backend = backend_directory(installation, tmp_path / "cache") / "python"
    assert sorted(path.name for path in backend.iterdir()) == [
        "libtriton_python.so",
        STUB,
        "triton_python_backend_utils.py",
    ]
    assert os.access(backend / STUB, os.X_OK)


def test_the_backend_folder_is_used_again(installation: Installation, tmp_path: Path):
    first = backend_directory(installation, tmp_path)
    inode = first.stat().st_ino
    assert backend_directory(installation, tmp_path).stat().st_ino == inode


def test_many_starts_at_once_share_one_whole_folder(installation: Installation, tmp_path: Path):
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: backend_directory(installation, tmp_path), range(16)))
    assert len(folders) == 1
    assert len(list((folders.pop() / "python").iterdir())) == 3
    assert len(list((tmp_path / "backends").iterdir())) == 1, "no staging folder is left behind"


def test_a_cache_that_cannot_be_written_is_named(installation: Installation, tmp_path: Path):
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(ServerError, match="cache") as caught:
        backend_directory(installation, tmp_path / "cache")
    assert "--cache-folder" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "path", ["/my models", "/a;b", "/$HOME/x", "/it's", "/a(1)", "/a?b", "/a{b,c}", "/a*", "/a[b]"]
)
def test_a_path_that_a_shell_would_take_apart_is_refused(path: str):
    with pytest.raises(ServerError, match="python backend cannot use a path with"):
        check_path(Path(path))


def test_ordinary_paths_are_accepted():
    check_path(Path("/home/jörg/model_repository-2.0/a+b@c"))
