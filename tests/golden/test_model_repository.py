"""model_repository/ in the checkout is what the templates make of the reference specification, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.reference import render_reference
from tests.support.files import texts
from tritonforge.repository.lint import lint
from tritonforge.repository.pbtxt import read_config

REFERENCE = Path(__file__).parents[2] / "model_repository"


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference, rendered now."""
    folder = tmp_path_factory.mktemp("reference")
    render_reference(folder)
    return folder


def test_the_reference_is_up_to_date(rendered: Path) -> None:
    expected = texts(rendered)
    found = {name: text for name, text in texts(REFERENCE).items() if name != "README.md"}

    assert found == expected, "run scripts/render-reference and review what changed"


def test_the_reference_has_no_errors() -> None:
    findings = lint(REFERENCE)

    assert {(finding.code, finding.severity.value) for finding in findings} <= {
        ("engine-missing", "warning"),  # it is rendered without engines
        ("python-cache", "warning"),  # and without what Python compiles
    }


def test_rendering_depends_on_nothing_but_the_specification(rendered: Path, tmp_path: Path) -> None:
    render_reference(tmp_path)

    assert texts(tmp_path) == texts(rendered)
    assert not [text for text in texts(tmp_path).values() if "/tmp" in text or str(Path.home()) in text]


def test_every_choice_in_a_config_is_explained(rendered: Path) -> None:
    for file in rendered.glob("*/config.pbtxt"):
        lines = file.read_text().splitlines()
        assert sum(line.startswith("#") for line in lines) >= 8
        assert max(len(line) for line in lines) <= 160
        assert read_config(file).name == file.parent.name
