"""Chat templates: the same environment as transformers gives them, in a sandbox."""

from __future__ import annotations

import datetime
import json
import time
from pathlib import Path

import pytest

from tritonforge.runtime.gateway.errors import VersionUnusable
from tritonforge.runtime.gateway.tokenization.chat_template import ChatTemplate
from tritonforge.runtime.gateway.tokenization.template_files import find_templates
from tritonforge.runtime.tensors import RequestRejected

USER = ({"role": "user", "content": "Hi"},)

GROWING = "{{% set n = namespace(t='abcdefgh') %}}{{% for i in range(60) %}}{}{{% endfor %}}"


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


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "takes longer than 0.2 s"),
        (
            "{% macro twice(n) %}{{ twice(n - 1) ~ twice(n - 1) if n else '' }}{% endmacro %}{{ twice(60) }}",
            "takes longer than 0.2 s",
        ),
        ("{{ 'a' * 3000000000 }}", "writes more than 4194304 characters"),
        ("{{ 3000000000 * 'a' }}", "writes more than 4194304 characters"),
        ("{{ ([0] * 3000000000) | length }}", "writes more than 4194304 characters"),
        ("{% set x = 'a' * 3000000000 %}", "writes more than 4194304 characters"),
        ("{% if 'a' * 3000000000 %}{% endif %}", "writes more than 4194304 characters"),
        ("{{ 10 ** 1000000000 }}", "computes 10 ** 1000000000"),
        ("{% for i in range(5) %}{{ 'a' * 1000000 }}{% endfor %}", "writes more than 4194304 characters"),
        (GROWING.format("{% set n.t = n.t ~ n.t %}"), "writes more than 4194304 characters"),
        (GROWING.format("{% set n.t = n.t + n.t %}"), "writes more than 4194304 characters"),
        (GROWING.format("{% set t %}{{ n.t }}{{ n.t }}{% endset %}{% set n.t = t %}"), "writes more than 4194304"),
        ("{% for i in range(5000) %}" + "a" * 1000 + "{% endfor %}", "writes more than 4194304 characters"),
    ],
)
def test_a_template_has_limits(source: str, reason: str) -> None:
    template = ChatTemplate(source, {}, time_limit_s=0.2)
    start_s = time.monotonic()
    with pytest.raises(RequestRejected, match="messages: the chat template ") as caught:
        template.render(USER)
    assert reason in str(caught.value)
    assert time.monotonic() - start_s < 5


def test_arithmetic_of_templates_stays() -> None:
    assert render(
        "{{ 2 * 3 }} {{ 'ab' * 2 }} {{ 2 ** 10 }} {{ 2 ** 0.5 }} {{ [0] * 2 }} {{ 1 + 2 }} {{ 'a' ~ 1 ~ nothing }}"
    ) == (f"6 abab 1024 {2**0.5} [0, 0] 3 a1")


def test_a_template_that_is_nested_too_deeply_is_found_at_load_time() -> None:
    with pytest.raises(VersionUnusable, match="the chat template cannot be compiled: RecursionError"):
        ChatTemplate("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", {})


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
