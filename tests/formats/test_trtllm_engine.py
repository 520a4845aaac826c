import json
from pathlib import Path

import pytest

from tritonforge.errors import BuildError, CorruptFile
from tritonforge.formats.trtllm_engine import read_engine_folder, same_release

MODEL = {"architecture": "LlamaForCausalLM", "dtype": "float16", "vocab_size": 128}
BUILD = {
    "max_batch_size": 4,
    "max_input_len": 64,
    "max_seq_len": 128,
    "max_num_tokens": 256,
    "max_beam_width": 2,
    "plugin_config": {"context_fmha": True},
}


def write(folder: Path, *, ranks: int = 1, model: dict = MODEL, build: dict = BUILD, **fields: object) -> Path:
    folder.mkdir(parents=True)
    config = {"version": "0.16.0", "pretrained_config": model, "build_config": build, **fields}
    (folder / "config.json").write_text(json.dumps(config))
    for rank in range(ranks):
        (folder / f"rank{rank}.engine").write_bytes(b"engine")
    return folder


def without(values: dict, key: str) -> dict:
    return {name: value for name, value in values.items() if name != key}


def test_reads_what_the_engine_says(tmp_path: Path):
    mapping = {"world_size": 4, "tp_size": 2, "pp_size": 2}
    made = read_engine_folder(write(tmp_path / "engine", ranks=4, model={**MODEL, "mapping": mapping}))

    assert (made.version, made.architecture, made.dtype, made.vocab_size) == ("0.16.0", *MODEL.values())
    assert (made.tp_size, made.pp_size, made.world_size) == (2, 2, 4)
    assert (made.max_batch_size, made.max_input_len, made.max_seq_len) == (4, 64, 128)
    assert (made.max_num_tokens, made.max_beam_width) == (256, 2)
    assert made.plugin_config == {"context_fmha": True}
    assert made.files == ("config.json", "rank0.engine", "rank1.engine", "rank2.engine", "rank3.engine")
    assert made.weights_bytes == 4 * len(b"engine")


def test_old_releases_count_the_answer_alone(tmp_path: Path):
    build = {**without(BUILD, "max_seq_len"), "max_output_len": 100}

    assert read_engine_folder(write(tmp_path / "engine", build=build)).max_seq_len == 164


def test_what_a_release_leaves_open_is_none(tmp_path: Path):
    made = read_engine_folder(write(tmp_path / "engine", build={**BUILD, "max_num_tokens": None}))

    assert made.max_num_tokens is None


@pytest.mark.parametrize("key", ["version", "pretrained_config", "build_config"])
def test_a_missing_part_is_named(tmp_path: Path, key: str):
    with pytest.raises(CorruptFile, match=f"{key} is missing"):
        read_engine_folder(write(tmp_path / "engine", **{key: None}))


@pytest.mark.parametrize("key", ["max_batch_size", "max_input_len", "max_seq_len"])
def test_a_missing_limit_is_named(tmp_path: Path, key: str):
    with pytest.raises(CorruptFile, match=f"config.json: build_config.{key} is missing"):
        read_engine_folder(write(tmp_path / "engine", build=without(BUILD, key)))


def test_a_checkpoint_is_no_engine(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps(MODEL))

    with pytest.raises(CorruptFile, match="pretrained_config is missing; expected an object"):
        read_engine_folder(tmp_path)


def test_a_folder_without_config_says_what_it_should_be(tmp_path: Path):
    with pytest.raises(BuildError, match=r"has no config\.json; expected the folder of a TensorRT-LLM engine"):
        read_engine_folder(tmp_path)


def test_a_missing_rank_is_named(tmp_path: Path):
    folder = write(tmp_path / "engine", ranks=1, model={**MODEL, "mapping": {"tp_size": 2}})

    with pytest.raises(BuildError, match=r"rank1\.engine: no such file; expected the engines of 2 ranks"):
        read_engine_folder(folder)


def test_an_empty_engine_is_refused(tmp_path: Path):
    folder = write(tmp_path / "engine")
    (folder / "rank0.engine").write_bytes(b"")

    with pytest.raises(CorruptFile, match=r"rank0\.engine: is empty"):
        read_engine_folder(folder)


@pytest.mark.parametrize("version", ["0.16.0", "0.16.0+cu124"])
def test_a_packager_may_add_to_a_release(version: str):
    assert same_release(version, "0.16.0")


@pytest.mark.parametrize("version", ["0.16.0.dev2024112600", "0.16.0rc1", "0.16.1", "0.16", "0.16.0.post1", ""])
def test_other_builds_are_other_releases(version: str):
    assert not same_release(version, "0.16.0")
