from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.docker_builds import Builds
from tests.support.docker_engine import DockerEngine


@pytest.fixture
def builds(docker_engine: DockerEngine, tmp_path: Path) -> Iterator[Builds]:
    yield Builds(docker_engine, tmp_path)
    assert docker_engine.containers() == [], "every test leaves the engine without containers of ours"
