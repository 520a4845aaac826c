"""The folder beside a repository is one and the same, whatever way leads to the repository."""

from pathlib import Path

from tritonforge.places import forge_folder


def test_it_lies_beside_the_repository(tmp_path: Path) -> None:
    assert forge_folder(tmp_path / "models") == tmp_path.resolve() / "models.forge"


def test_a_link_leads_to_the_folder_of_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "disk" / "models").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "models")

    assert forge_folder(tmp_path / "link") == forge_folder(tmp_path / "disk" / "models")


def test_steps_up_make_no_difference(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()

    assert forge_folder(tmp_path / "models" / "tiny" / "..") == forge_folder(tmp_path / "models")
    assert forge_folder(tmp_path / "models" / ".." / "models") == forge_folder(tmp_path / "models")
