"""The configs of NVIDIA's ensemble, release by release: byte for byte, and tensor by tensor against the tags."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tritonclient.grpc.model_config_pb2 import DataType, ModelConfig

from tests.golden.ensemble_configs import FOLDER, PARTS, RELEASES, render_release
from tests.repository.ensemble_table import TAGS, Row, maps, rows
from tritonforge.releases.table import all_releases
from tritonforge.repository.lint import Severity, lint
from tritonforge.repository.pbtxt import parse_config, read_config

MODELS = {"preprocessing": "llama_preprocessing_v3", "postprocessing": "llama_postprocessing_v3", "ensemble": "llama"}


def read_rows(tensors: Iterable[Any]) -> dict[str, Row]:
    return {
        tensor.name: Row(
            DataType.Name(tensor.data_type),
            tuple(tensor.dims),
            getattr(tensor, "optional", False),
            getattr(tensor, "allow_ragged_batch", False),
        )
        for tensor in tensors
    }


def golden(release: str, part: str) -> ModelConfig:
    return parse_config((FOLDER / release / f"{part}.pbtxt").read_text(), file=f"{release}/{part}")


@pytest.mark.parametrize("release", RELEASES)
def test_configs_are_up_to_date(release: str, tmp_path: Path) -> None:
    render_release(release, tmp_path)

    for part in PARTS:
        text = (tmp_path / part / "config.pbtxt").read_text()
        assert text == (FOLDER / release / f"{part}.pbtxt").read_text(), "run python -m tests.golden.ensemble_configs"
        assert max(len(line) for line in text.splitlines()) <= 160


@pytest.mark.parametrize("tag", TAGS)
def test_every_tensor_is_as_in_the_tag(tag: str, tmp_path: Path) -> None:
    render_release(tag, tmp_path)

    for model, folder in MODELS.items():
        config = read_config(tmp_path / folder / "config.pbtxt")
        assert read_rows(config.input) == rows(tag, model, "input"), model
        assert read_rows(config.output) == rows(tag, model, "output"), model


@pytest.mark.parametrize("tag", RELEASES)
def test_every_joint_is_as_in_the_tag(tag: str) -> None:
    steps = golden(tag, "llama").ensemble_scheduling.step

    assert [step.model_name for step in steps] == list(PARTS[:3])
    assert [step.model_version for step in steps] == [-1, -1, -1]
    for step, expected in zip(steps, maps(tag), strict=True):
        assert dict(step.input_map) == expected["in"]
        assert dict(step.output_map) == expected["out"]


@pytest.mark.parametrize("release", RELEASES)
def test_the_rest_is_as_upstream_has_it(release: str) -> None:
    first, engine, last, ensemble = (golden(release, part) for part in PARTS)
    is_late = [int(part) for part in release.split(".")] >= [0, 13]

    assert (first.backend, last.backend, ensemble.platform, ensemble.backend) == ("python", "python", "ensemble", "")
    assert {config.max_batch_size for config in (first, engine, last, ensemble)} == {8}
    assert engine.model_transaction_policy.decoupled
    assert ensemble.model_transaction_policy.decoupled
    assert (last.HasField("dynamic_batching"), first.HasField("dynamic_batching")) == (is_late, release == "0.19.0")
    assert first.parameters["add_special_tokens"].string_value == "true"
    assert last.parameters["skip_special_tokens"].string_value == "true"
    assert not ensemble.instance_group


@pytest.mark.parametrize("release", [release.name for release in all_releases()])
def test_every_release_has_an_ensemble_that_lint_takes(release: str, tmp_path: Path) -> None:
    render_release(release, tmp_path)

    assert [finding for finding in lint(tmp_path) if finding.severity is Severity.ERROR] == []


def test_releases_whose_tags_were_not_read_say_so(tmp_path: Path) -> None:
    render_release("1.0.0", tmp_path)

    for part in ("llama_preprocessing_v3", "llama_postprocessing_v3", "llama_ensemble_v3"):
        text = (tmp_path / part / "config.pbtxt").read_text()
        assert "inferred: carried on from 0.19; no tag was read" in text
    engine_in = read_config(tmp_path / "llama_ensemble_v3" / "config.pbtxt").ensemble_scheduling.step[1].input_map
    # Both names under which later sources read these two are joined.
    assert (engine_in["min_length"], engine_in["min_tokens"]) == ("min_length", "min_length")
    assert (engine_in["random_seed"], engine_in["seed"]) == ("random_seed", "random_seed")
