"""The wheel works as the checkout does: it carries the templates and everything that is copied into repositories."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import gettempdir
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(ROOT))
    (built,) = out.glob("tritonforge-*.whl")
    return built


def run(*arguments: str, python: str = sys.executable, **env: str) -> str:
    """Output of a Python program; its errors are shown when it fails."""
    command = [python, *arguments]
    # Away from the checkout, whose folder Python would otherwise look into first.
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=240, env={**os.environ, **env}, cwd=gettempdir(), check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_wheel_renders_from_its_own_templates(wheel: Path, tmp_path: Path) -> None:
    """Without the checkout on the path, the same repository comes out."""
    target = tmp_path / "site"
    run("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel))
    probe = "import tritonforge, tritonforge.repository.templates as t; print(tritonforge.__file__, t.builtin_folder())"

    package, templates = run("-c", probe, PYTHONPATH=str(target)).split()

    assert Path(package).is_relative_to(target)
    assert Path(templates).is_relative_to(target)
    checkout = {
        path.relative_to(ROOT / "templates") for path in (ROOT / "templates").rglob("*.*") if path.suffix != ".pyc"
    }
    assert {path.relative_to(templates) for path in Path(templates).rglob("*.*") if path.suffix != ".pyc"} == checkout


def test_wheel_carries_the_data_of_the_releases(wheel: Path) -> None:
    data = ROOT / "tritonforge" / "releases" / "data"
    with ZipFile(wheel) as archive:
        packed = {Path(name).name for name in archive.namelist() if name.startswith("tritonforge/releases/data/")}
    assert packed == {path.name for path in data.iterdir()} >= {"containers.yaml", "build_options.yaml"}


@pytest.mark.slow
def test_wheel_builds_a_model_in_an_empty_environment(wheel: Path, tiny_llama: Path, tmp_path: Path) -> None:
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    run("-m", "pip", "install", "--quiet", f"{wheel}[embedded]", python=python)
    spec = tmp_path / "forge.yaml"
    spec.write_text(
        f"schema: 1\nrepository: ./models\nmodels:\n  - name: tiny\n    checkpoint: {tiny_llama}\n"
        "    versions: {1: {engine: {kind: openvino, precision: int8}}}\n"
    )

    run("-m", "tritonforge", "build", "-f", str(spec), python=python)

    run("-m", "tritonforge", "lint", str(tmp_path / "models"), python=python)
