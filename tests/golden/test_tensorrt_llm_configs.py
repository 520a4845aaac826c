"""The config.pbtxt of the `tensorrtllm` backend, release by release, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.tensorrt_llm_configs import FOLDER, RELEASES, render_config
from tritonforge.repository.pbtxt import parse_config


@pytest.mark.parametrize("release", RELEASES)
def test_a_config_is_up_to_date(release: str, tmp_path: Path) -> None:
    text = render_config(release, tmp_path)

    expected = (FOLDER / f"{release}.pbtxt").read_text()
    assert text == expected, "run python -m tests.golden.tensorrt_llm_configs and review what changed"
    assert max(len(line) for line in text.splitlines()) <= 160


@pytest.mark.parametrize("release", RELEASES)
def test_tritons_own_protobuf_reads_it_whole(release: str) -> None:
    config = parse_config((FOLDER / f"{release}.pbtxt").read_text(), file=release)

    assert (config.name, config.backend, config.max_batch_size) == ("llama_engine_v3", "tensorrtllm", 8)
    assert config.parameters["gpt_model_path"].string_value == "/models/llama_engine_v3/3"


def test_there_is_no_file_without_a_release() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(RELEASES)
