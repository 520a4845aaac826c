"""A server is started on a repository that was put back first."""

from pathlib import Path

import pytest

from tritonforge.errors import RepositoryError
from tritonforge.pipeline.serve import serve
from tritonforge.places import forge_folder


def test_a_change_that_cannot_be_undone_is_found_before_the_server_starts(tmp_path: Path) -> None:
    (tmp_path / "models" / "tiny").mkdir(parents=True)
    forge_folder(tmp_path / "models").mkdir()
    (forge_folder(tmp_path / "models") / "journal.json").write_text("{")

    with pytest.raises(RepositoryError, match="an unfinished change is recorded here"):
        serve(tmp_path / "models")

    assert not (forge_folder(tmp_path / "models") / "logs").exists()


def test_a_repository_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError, match="no such model repository"):
        serve(tmp_path / "models")

    assert list(tmp_path.iterdir()) == []
