"""What an import costs: the package and its help load no heavy library."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    "grpc", "jinja2", "numpy", "openvino", "openvino_genai", "pydantic", "rich", "tokenizers", "torch", "transformers",
    "tritonclient", "yaml",
}  # fmt: skip


def modules_after(program: str) -> set[str]:
    """Top-level modules that a clean interpreter holds after `program`."""
    report = f"{program}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split("\n")[-2].split())


def test_import_of_the_package_loads_nothing_heavy() -> None:
    assert not modules_after("import tritonforge") & HEAVY


def test_help_loads_no_command_and_nothing_heavy() -> None:
    loaded = modules_after("from tritonforge.cli.main import run\nassert run(['--help']) == 0")

    assert not loaded & HEAVY


def test_client_loads_none_of_the_forge() -> None:
    loaded = modules_after("import tritonforge.client")

    assert not loaded & {"click", "jinja2", "openvino", "pydantic", "rich", "tokenizers", "torch", "yaml"}
