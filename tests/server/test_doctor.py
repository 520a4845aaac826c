import socket
from pathlib import Path

import pytest

from tritonforge.checks import FAIL, OK, WARN
from tritonforge.server import doctor
from tritonforge.server.doctor import examine


def test_every_check_has_a_status_and_every_problem_a_detail(tmp_path: Path):
    checks = examine(tmp_path)
    assert {check.status for check in checks} <= {OK, WARN, FAIL}
    assert all(check.detail for check in checks)
    assert len({check.name for check in checks}) == len(checks)


@pytest.mark.parametrize("version", [(3, 9, 1), (3, 10, 0), (3, 13, 0)])
def test_another_python_fails_with_the_versions_that_work(version: tuple[int, ...]):
    check = doctor._python(version)
    assert (check.status, check.fix) == (FAIL, "use Python 3.11 or 3.12")


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 9)])
def test_both_pythons_are_ok(version: tuple[int, ...]):
    assert doctor._python(version).status == OK


def test_a_package_that_is_not_installed_says_who_needs_it():
    check = doctor._package("no-such-package-here", needed_for="nothing", status=WARN, fix="do without")
    assert (check.status, check.detail, check.fix) == (WARN, "not installed; nothing needs it", "do without")


def test_a_port_in_use_is_a_warning_with_the_option():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        check = doctor._port("--http-port", listener.getsockname()[1])
    assert check.status == WARN
    assert "--http-port 0" in check.fix


@pytest.mark.parametrize(("kib", "status"), [(1_000_000, FAIL), (4_000_000, WARN), (32_000_000, OK)])
def test_memory_is_judged_by_what_is_available(tmp_path: Path, kib: int, status: str):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal:       99999999 kB\nMemAvailable:   {kib} kB\n")
    assert doctor._memory(meminfo).status == status


def test_a_cpu_without_avx2_is_a_warning(tmp_path: Path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor : 0\nflags\t\t: fpu sse4_2\n")
    assert doctor._cpu(cpuinfo).status == WARN
    cpuinfo.write_text("processor : 0\nflags\t\t: fpu sse4_2 avx2 amx_int8\n")
    assert "avx2 amx_int8" in doctor._cpu(cpuinfo).detail


def test_the_disk_of_a_folder_that_does_not_exist_yet_is_that_of_its_parent(tmp_path: Path):
    assert str(tmp_path) in doctor._disk(tmp_path / "new" / "models").detail
