"""Chat templates: the same environment as transformers gives them, in a sandbox."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from tritonforge.runtime.gateway.errors import VersionUnusable
from tritonforge.runtime.gateway.tokenization.chat_template import ChatTemplate
from tritonforge.runtime.gateway.tokenization.template_files import find_templates
from tritonforge.runtime.tensors import RequestRejected

USER = ({"role": "user", "content": "Hi"},)


def render(source: str, messages: tuple[dict[str, object], ...] = USER) -> str:
    return ChatTemplate(source, {"bos_token": "<s>"}).render(messages)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ bos_token }}{{ messages[0].content }}", "<s>Hi"),
        ("{% if true %}\nx\n{% endif %}\n", "x\n"),
        ("a\n   {% if true %}b{% endif %}", "a\nb"),
        ("{% for m in messages %}{% if m.role == 'user' %}{% break %}{% endif %}{% endfor %}done", "done"),
        ("{% generation %}body{% endgeneration %}", "body"),
        ("{{ tools is none }} {{ documents is defined }} {{ add_generation_prompt }}", "True True True"),
        ("{{ nothing }}{{ messages[0].name }}.", "."),
        ("{{ {'b': '<é>', 'a': 1} | tojson }}", '{"b": "<é>", "a": 1}'),
        ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
        ("{{ {'b': 1, 'a': 'é'} | tojson(ensure_ascii=true, sort_keys=true) }}", '{"a": "\\u00e9", "b": 1}'),
        ("{{ messages[0].content.strip().split('i')[0] }}", "H"),
    ],
)
def test_the_environment_is_that_of_transformers(source: str, expected: str) -> None:
    assert render(source) == expected


def test_the_date_is_todays() -> None:
    assert render("{{ strftime_now('%Y') }}") in {str(datetime.datetime.now().year + i) for i in (-1, 0)}


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('roles must alternate') }}",
        "{{ messages[0].missing.attribute }}",
        "{{ messages.append(1) }}",
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{% include 'other' %}",
        "{{ 'a' + 1 }}",
        "{% for i in range(10000000) %}{% endfor %}",
    ],
)
def test_what_a_template_may_not_do_is_an_error_of_the_request(source: str) -> None:
    with pytest.raises(RequestRejected, match="messages: the chat template"):
        render(source)


def test_a_refusal_is_in_the_templates_own_words() -> None:
    with pytest.raises(RequestRejected, match="refuses them: roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}")


def test_a_template_that_does_not_parse_is_found_at_load_time() -> None:
    with pytest.raises(VersionUnusable, match="does not parse: line 2"):
        ChatTemplate("{% if true %}\n{% endfor %}", {})


def test_a_template_file_replaces_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": "old"}))
    assert find_templates(tmp_path) == {"default": "old"}
    (tmp_path / "chat_template.jinja").write_text("new")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("tools")
    assert find_templates(tmp_path) == {"default": "new", "tool_use": "tools"}


def test_named_templates_of_the_configuration_are_found(tmp_path: Path) -> None:
    named = [{"name": "default", "template": "a"}, {"name": "rag", "template": "b"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": named}))
    assert find_templates(tmp_path) == {"default": "a", "rag": "b"}
