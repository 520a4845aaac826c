"""How well each line's ensemble is known: its tensors, and how they are joined."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.ensemble_configs import render_release
from tritonforge.releases.ensemble import ensemble_line
from tritonforge.releases.table import all_lines, find_release

READ = ("0.9", "0.12", "0.16", "0.19")


def test_joints_were_read_in_four_tags() -> None:
    lines = {line: ensemble_line(find_release(f"{line}.0")) for line in all_lines()}
    assert tuple(line for line, one in lines.items() if one.has_read_joints) == READ
    assert [line for line, one in lines.items() if one.evidence == "read"][-1] == "0.19"


@pytest.mark.parametrize("release", ["0.12.0", "0.13.0", "0.18.0"])
def test_what_is_rendered_says_when_its_joints_were_not_read(release: str, tmp_path: Path) -> None:
    render_release(release, tmp_path)
    text = (tmp_path / "llama_ensemble_v3" / "config.pbtxt").read_text()
    line = release.removesuffix(".0")
    said = f"those of tensorrtllm_backend {line} (its joints are inferred from those of other lines)"
    assert f"those of tensorrtllm_backend {line}" in text
    assert (said in text) == (line not in READ)
