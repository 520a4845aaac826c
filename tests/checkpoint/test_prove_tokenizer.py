"""A tokenizer or a template that the gateway could not use is found before it is published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.checkpoints import write_chatglm, write_glm, write_llama
from tritonforge.checkpoint.prove_tokenizer import prove_tokenizer
from tritonforge.checkpoint.source import open_checkpoint
from tritonforge.checkpoint.tokenizer import find_tokenizer
from tritonforge.errors import CheckpointError

GIB = 1024**3
ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
GROWING = "{% set n = namespace(t='abcdefgh') %}{% for i in range(60) %}{% set n.t = n.t ~ n.t %}{% endfor %}{{ n.t }}"


def prove(folder: Path, *, time_limit_s: int = 20) -> None:
    source = open_checkpoint(folder)
    prove_tokenizer(source, find_tokenizer(source), time_limit_s=time_limit_s, memory_limit_bytes=GIB // 2)


def with_template(folder: Path, template: str) -> Path:
    (write_llama(folder) / "chat_template.jinja").write_text(template)
    return folder


def test_the_tokenizers_of_every_kind_are_proved(tmp_path: Path) -> None:
    prove(write_llama(tmp_path / "llama"))
    prove(write_llama(tmp_path / "pieces", tokenizer="sentencepiece"))
    prove(write_glm(tmp_path / "glm"))
    for version in ("chatglm2", "chatglm3", "glm4"):
        prove(write_chatglm(tmp_path / version, version=version))


def test_a_checkpoint_without_a_template_answers_prompts_only(tmp_path: Path) -> None:
    source = write_llama(tmp_path)
    path = source / "tokenizer_config.json"
    values = json.loads(path.read_text())
    del values["chat_template"]
    path.write_text(json.dumps(values))
    prove(source)


def test_a_template_may_demand_a_system_message(tmp_path: Path) -> None:
    prove(with_template(tmp_path, "{% if messages[0].role != 'system' %}{{ raise_exception('no') }}{% endif %}chat"))


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{% for %}", "cannot be used to compile the chat template: the chat template does not parse: line 1"),
        ("{{ messages[0].x.y }}", "cannot be used to encode a chat: the chat template refuses them"),
        ("{{ raise_exception('never') }}", "the chat template refuses them: never"),
        ("{{ 1 / 0 }}", "the chat template fails: ZeroDivisionError"),
        ("{{ 9 ** (9 ** 9) }}", "cannot be used to"),
        (GROWING, "cannot be used to encode a chat: the chat template writes more than 4194304 characters"),
        ("", "it gives no token"),
    ],
)
def test_a_template_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path, template: str, reason: str) -> None:
    with pytest.raises(CheckpointError) as caught:
        prove(with_template(tmp_path, template))
    assert str(caught.value).startswith(str(tmp_path / "chat_template.jinja"))
    assert reason in str(caught.value)


def test_a_template_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="to encode a chat: the chat template takes longer than 2 s"):
        prove(with_template(tmp_path, ENDLESS))


def test_a_trial_that_computes_for_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be used to .*: it takes longer than 1 s"):
        prove(with_template(tmp_path, ENDLESS), time_limit_s=1)


def test_a_tokenizer_that_its_library_refuses_is_named(tmp_path: Path) -> None:
    path = write_llama(tmp_path) / "tokenizer.json"
    values = json.loads(path.read_text())
    values["model"]["merges"] = [["no such token", "nor this"]]
    path.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json: cannot be used to load the tokenizer: "):
        prove(tmp_path)


def test_added_tokens_beyond_the_models_vocabulary_are_named(tmp_path: Path) -> None:
    path = with_template(tmp_path, "<|far|>{{ messages[0].content }}") / "tokenizer.json"
    values = json.loads(path.read_text())
    size = len(values["model"]["vocab"])
    values["added_tokens"].append({**values["added_tokens"][0], "id": size, "content": "<|far|>"})
    path.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match=rf"it gives token {size}, but the model knows {size}"):
        prove(tmp_path)
