"""What docs/releases.md shows is what the data has."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tritonforge.cli.main import run
from tritonforge.releases.build_options import EVIDENCE
from tritonforge.releases.files import FOLDER, read_data
from tritonforge.releases.table import all_releases

PAGE = (Path(__file__).parents[2] / "docs" / "releases.md").read_text(encoding="utf-8")


def test_the_row_of_the_page_has_the_keys_of_a_row() -> None:
    row, option = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    rows = read_data("containers")["containers"]
    assert set(rows[-1]) == set(row[0])
    assert set(row[0]) - set(rows[0]) == set()
    ((name, written),) = option.items()
    known = read_data("build_options")["options"][name]
    assert [{**entry, "note": None} for entry in written] == [{**entry, "note": None} for entry in known]


def test_the_page_names_every_mark_and_every_file_that_it_lists() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(EVIDENCE)
    for name in re.findall(r"`(\w+\.yaml)`", PAGE):
        assert name == "forge.yaml" or (FOLDER / name).is_file(), name


def test_the_page_counts_right() -> None:
    containers = sum(len(release.containers) for release in all_releases())
    names = [release.name for release in all_releases()]
    assert f"releases {names[0]} to {names[-1]} and the {containers} Triton containers" in PAGE


def test_the_commands_of_the_page_run() -> None:
    commands = re.findall(r"^tritonforge (releases.*?)  +", PAGE, re.MULTILINE)
    assert len(commands) == 5
    for command in commands:
        assert run(command.split()) == 0
