"""What docs/ensemble.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.spec.examples import load_text
from tritonforge.repository.ensemble import EnsembleNames
from tritonforge.spec.layout import ENSEMBLE_KINDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ensemble.md").read_text(encoding="utf-8")


def test_the_example_is_a_specification(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

    (model,) = load_text(tmp_path, f"schema: 1\nrepository: ./models\n{example}").spec.models
    assert (model.name, model.layout) == ("llama", "ensemble")


def test_names_files_and_kinds_are_those_of_the_package() -> None:
    names = EnsembleNames("llama", 7)
    for name in (*names.parts, names.engine):
        assert f"`{name.replace('7', '<N>')}`" in PAGE
    for file in re.findall(r"`(tritonforge/[\w/]+\.\w+)`", PAGE):
        assert (ROOT / file).is_file(), file
    assert all(f"`{kind}`" in PAGE for kind in ENSEMBLE_KINDS)
