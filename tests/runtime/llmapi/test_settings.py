"""The model.yaml of a version: what is read, and what is refused before the GPUs are touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tritonforge.runtime.llmapi.settings import SettingsInvalid, read_settings


def write(folder: Path, **changes: Any) -> Path:
    value = {"model": str(folder), "backend": "pytorch", "triton_config": {"max_batch_size": 0, "decoupled": True}}
    path = folder / "model.yaml"
    path.write_text(yaml.safe_dump({**value, **changes}))
    return path


def test_what_concerns_triton_is_kept_from_the_engine(tmp_path: Path) -> None:
    triton = {"max_batch_size": 0, "decoupled": True, "cancellation_check_period_ms": 250}
    settings = read_settings(write(tmp_path, triton_config=triton, kv_cache_config={"enable_block_reuse": True}))
    assert settings.check_period_s == 0.25
    assert settings.llm_args == {
        "model": str(tmp_path), "backend": "pytorch", "kv_cache_config": {"enable_block_reuse": True}
    }  # fmt: skip


def test_a_file_without_triton_config_will_do(tmp_path: Path) -> None:
    assert read_settings(write(tmp_path, triton_config=None)).check_period_s == 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trust_remote_code": True}, "trust_remote_code is set; a checkpoint's code is never run here"),
        ({"model": "org/name"}, "model is 'org/name', which is no folder here"),
        ({"model": None}, "model is None"),
        ({"triton_config": {"max_batch_size": 8}}, "triton_config.max_batch_size is 8; expected 0"),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        read_settings(write(tmp_path, **changes))
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["[a]", "a: [", "", "!!python/object:os.system {}"])
def test_a_file_that_is_no_mapping_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    with pytest.raises(SettingsInvalid, match=r"model\.yaml (cannot be read|holds a)"):
        read_settings(path)
