"""Two builds of one version at once: the first one counts, and the second one says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipeline.builds import INT4, INT8, build, states, write_spec
from tests.support.files import contents
from tritonforge.errors import RepositoryError


def while_compiling(spec: Path, other: Path) -> list[str]:
    """Build `spec`; when its first version has been converted, build `other` to its end. Returns what was said.

    The other one makes everything itself: through the cache it would wait for the first.
    """
    said: list[str] = []

    def on_event(line: str) -> None:
        if line.startswith("building") and not any("building" in earlier for earlier in said):
            said.append(line)
            build(other, use_cache=False)
        said.append(line)

    build(spec, on_event=on_event)
    return said


def test_same_version_from_another_build_is_left_as_it_is(tiny_llama: Path, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, tiny_llama)

    said = while_compiling(spec, spec)

    assert "tiny version 1: another build has published it meanwhile" in said
    assert states(build(spec)) == {1: "unchanged"}


def test_other_version_under_the_same_number_is_not_replaced(tiny_llama: Path, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    for folder, engine in ((mine, INT8), (theirs, INT4)):
        folder.mkdir()
        spec = write_spec(folder, tiny_llama, versions=f"1: {engine}")
        spec.write_text(spec.read_text().replace("./models", str(tmp_path / "models")))

    with pytest.raises(RepositoryError, match="with other settings"):
        while_compiling(mine / "forge.yaml", theirs / "forge.yaml")

    published = contents(tmp_path / "models")
    assert states(build(theirs / "forge.yaml")) == {1: "unchanged"}
    assert contents(tmp_path / "models") == published


def test_version_that_left_the_spec_is_mentioned_and_stays(tiny_llama: Path, tmp_path: Path) -> None:
    build(write_spec(tmp_path, tiny_llama, versions=f"1: {INT8}\n      2: {INT4}"))
    said: list[str] = []

    build(write_spec(tmp_path, tiny_llama), on_event=said.append)

    assert "tiny version 2 is not in the spec; it stays published, with the traffic it has" in said
    assert (tmp_path / "models" / "tiny_engine_v2").is_dir()
