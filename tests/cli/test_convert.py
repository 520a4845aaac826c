"""`tritonforge convert` from the outside."""

import json
from pathlib import Path

import pytest

from tests.support.checkpoints import write_llama
from tritonforge.cli.main import run


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_progress_goes_to_standard_error_also_with_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    source, out = write_llama(tmp_path / "hf", tokenizer=None), tmp_path / "out"

    assert run(["convert", str(source), str(out), *options]) == 0

    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.err.splitlines()] == ["converting", "wrote"]
    assert (json.loads(printed.out)["path"] if options else printed.out.strip()) == str(out)


def test_ranks_and_sharding_reach_the_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = write_llama(tmp_path / "hf", tokenizer=None), tmp_path / "out"
    options = ["--tp", "2", "--pp", "2", "--embedding-sharding", "hidden", "--precision", "bfloat16", "--json"]

    assert run(["convert", str(source), str(out), *options]) == 0

    config = json.loads(capsys.readouterr().out)["config"]
    assert config == json.loads((out / "config.json").read_text())
    assert config["mapping"] == {"world_size": 4, "tp_size": 2, "pp_size": 2}
    assert (config["dtype"], config["embedding_sharding_dim"]) == ("bfloat16", 1)
    assert len(list(out.glob("rank*.safetensors"))) == 4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--precision", "float16", "--dtype", "bfloat16"], "float16 contradicts --dtype bfloat16"),
        (["--group-size", "64"], "--group-size: is only for --precision int4_awq"),
        (
            ["--smoothquant-alpha", "0.7", "--precision", "fp8"],
            "--smoothquant-alpha: is only for --precision int8_smoothquant",
        ),
        (["--per-tensor"], "is only for --precision int8_smoothquant"),
        (["--activation-ranges", "ranges.safetensors"], "--activation-ranges: is only for --precision int4_awq,"),
        (["--activation-ranges", "x", "--precision", "int8_weight_only"], "--activation-ranges: is only for"),
        (["--smoothquant-alpha", "1.5"], "1.5 is not in the range"),
        (["--precision", "int3"], "'int3' is not one of"),
        (["--group-size", "100"], "'100' is not one of"),
        (["--tp", "0"], "0 is not in the range"),
    ],
)
def test_an_option_that_says_nothing_here_is_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], expected: str
) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)

    assert run(["convert", str(source), str(tmp_path / "out"), *options]) == 2

    assert expected in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "code", "expected"),
    [
        (["--tp", "3"], 3, "4 query heads do not divide into 3 tensor-parallel ranks"),
        (["--pp", "3"], 3, "2 layers do not fill 3 pipeline stages"),
        (["--release", "0.16.9"], 2, "release '0.16.9' is not in the release table"),
        (["--release", "0.9.0", "--tp", "2", "--embedding-sharding", "vocab"], 3, "0.9.0 rejects a Llama embedding"),
        (["--precision", "fp8"], 3, "as fp8 is not supported"),
        (["--tp", "2", "--for-engine", "openvino"], 3, "the embedded engine runs in one process"),
    ],
)
def test_a_refusal_has_its_exit_code_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], code: int, expected: str
) -> None:
    source = write_llama(tmp_path / "hf", tokenizer=None)

    assert run(["convert", str(source), str(tmp_path / "out"), *options]) == code

    assert expected in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]
