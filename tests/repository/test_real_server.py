"""What the real Triton makes of rendered configs and of what the lint calls an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden.reference import render_reference
from tests.repository.trees import PYTHON, build_tree, python_model
from tritonforge.client import Client
from tritonforge.errors import ClientError
from tritonforge.repository.lint import lint
from tritonforge.repository.runtime_copy import compile_python
from tritonforge.server.launcher import start_embedded
from tritonforge.server.options import ServerOptions

pytestmark = pytest.mark.triton

# Takes the place of the real models: the config is what is judged here.
STAND_IN = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
REFUSED = {
    "negative_batch": "max_batch_size: -1\n" + PYTHON,
    "preferred_above_maximum": "max_batch_size: 4\ndynamic_batching { preferred_batch_size: 8 }\n" + PYTHON,
    "unknown_field": "max_batchsize: 4\n" + PYTHON,
    "placeholder": "max_batch_size: ${size}\n" + PYTHON,
    "no_version": "version_policy { latest {} }\n" + PYTHON,
    "cpu_with_gpus": 'backend: "python"\ninstance_group [ { kind: KIND_CPU gpus: 0 } ]',
    "no_data_type": 'backend: "python"\ninput { name: "x" dims: 1 }',
    "empty_dimension": 'backend: "python"\ninput { name: "x" data_type: TYPE_FP32 dims: 0 }',
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference models and broken ones, all with a stand-in for their code."""
    folder = tmp_path_factory.mktemp("real") / "models"
    folder.mkdir()
    render_reference(folder)
    for name, config in REFUSED.items():
        build_tree(folder, python_model(config, name=name))
    for model in folder.glob("*/*/model.py"):
        package = model.parent / "tritonforge_runtime"
        package.mkdir()
        (package / "__init__.py").write_text(STAND_IN)
        model.write_text("from .tritonforge_runtime import TritonPythonModel\n")
        compile_python(model.parent)
    return folder


@pytest.fixture(scope="module")
def client(repository: Path) -> Iterator[Client]:
    """A client of a server that serves the repository."""
    options = ServerOptions(grpc_port=0, http_port=0, metrics_port=0, models=(), exit_timeout_s=5)
    with start_embedded(repository, options=options) as server, Client(server.grpc_url) as client:
        yield client


@pytest.mark.parametrize("name", ["smollm2", "smollm2_engine_v1", "smollm2_engine_v2", "glm4", "glm4_engine_v1"])
def test_a_rendered_config_loads_and_its_folder_stays_untouched(client: Client, repository: Path, name: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in (repository / name).rglob("*")}

    client.load(name, timeout_s=60)

    assert client.config(name).max_batch_size > 0
    assert {path: path.stat().st_mtime_ns for path in (repository / name).rglob("*")} == before
    client.unload(name, timeout_s=60)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_the_lint_calls_an_error_is_refused(client: Client, repository: Path, name: str) -> None:
    errors = [finding for finding in lint(repository) if finding.severity == "error"]
    assert [finding for finding in errors if name in finding.path.parts]

    with pytest.raises(ClientError):
        client.load(name, timeout_s=60)
