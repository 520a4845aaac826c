from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonforge.engine.tensorrt_llm.command import BuildCommand
from tritonforge.engine.tensorrt_llm.output import Lines, failed

COMMAND = BuildCommand(argv=("trtllm-build", "--x"), cwd="/", image="image:1")


@settings(derandomize=True, max_examples=50)
@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), max_size=8), st.data())
def test_lines_come_whole_however_they_are_cut(texts: list[str], data: st.DataObject):
    content = "\n".join(texts).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    lines, found = Lines(), []
    for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True):
        found += lines.feed(content[start:end])

    assert found + lines.rest() == [kept for text in texts if (kept := text.rstrip())]


def test_steps_of_a_progress_bar_are_lines():
    assert Lines().feed(b"10%\r20%\r\n30%\n") == ["10%", "20%", "30%"]


def test_bytes_that_are_no_text_do_not_stop_a_build():
    assert Lines().feed(b"\xff ok\n") == ["\ufffd ok"]


def test_a_line_without_end_is_told_in_parts():
    lines = Lines()

    assert [len(part) for part in lines.feed(b"x" * 100_000)] == [100_000]
    assert lines.rest() == []


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("OSError: [Errno 28] No space left on device", "free disk space"),
        ("trtllm-build: error: unrecognized arguments: --x", "another release"),
        ("CUDA driver version is insufficient for CUDA runtime version", "update the NVIDIA driver"),
        ("RuntimeError: no CUDA-capable device is detected", "needs a GPU even to compile"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate", "free the GPU's memory"),
        ("Error Code 2: OutOfMemory (Requested size was 1 bytes.)", "free the GPU's memory"),
    ],
)
def test_what_the_last_lines_say_becomes_a_hint(tmp_path: Path, said: str, hint: str):
    (tmp_path / "log").write_text(f"before\n{said}\n")

    assert hint in (failed(COMMAND, returncode=1, log=tmp_path / "log").hint or "")


def test_where_nothing_is_known_the_log_is_pointed_at(tmp_path: Path):
    (tmp_path / "log").write_text("something\n")

    hint = failed(COMMAND, returncode=3, log=tmp_path / "log").hint or ""
    assert str(tmp_path / "log") in hint
    assert "engine.options: {log_level: verbose}" in hint


def test_a_program_that_the_image_does_not_have_is_named(tmp_path: Path):
    (tmp_path / "log").write_text("sh: 1: exec: trtllm-build: not found\n")

    assert (
        failed(COMMAND, returncode=127, log=tmp_path / "log").hint == "see whether image:1 has trtllm-build on its PATH"
    )
