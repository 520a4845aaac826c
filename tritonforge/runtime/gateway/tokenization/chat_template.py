"""Chat templates in a sandbox, with the same environment as transformers gives them. Owns jinja2.

Templates come with a checkpoint and are not trusted: they see plain JSON values only, and cannot load other templates
or change what they are given. Their time and memory are not limited.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from ...tensors import RequestRejected
from ..errors import VersionUnusable
from ..messages import Message


class ChatTemplate:
    """A compiled chat template.

    Args:
        source: Its Jinja text.
        special_tokens: Named special tokens (bos_token, …), which templates refer to.

    Raises:
        VersionUnusable: The text is not a valid template.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        try:
            self._template = _environment().from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise VersionUnusable(f"the chat template does not parse: line {error.lineno}: {error.message}") from error
        self._special_tokens = dict(special_tokens)

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt up to where the assistant's next reply begins.

        Raises:
            RequestRejected: The template refuses the messages, in its own words, or fails on them.
        """
        # None counts as defined: templates test `tools is not none`, so absent ones are None and not left out.
        variables = {**self._special_tokens, "tools": None, "documents": None, "add_generation_prompt": True}
        try:
            return self._template.render(messages=list(messages), **variables)
        except jinja2.TemplateError as error:
            raise RequestRejected(f"messages: the chat template refuses them: {error}") from error
        except Exception as error:  # noqa: BLE001 (a template is foreign code: TypeError, KeyError, …)
            raise RequestRejected(f"messages: the chat template fails: {type(error).__name__}: {error}") from error


class _GenerationTag(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}` marks text for training; here it only shows its body."""

    tags = {"generation"}  # noqa: RUF012 (the name and type that jinja2 asks for)

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def _environment() -> jinja2.Environment:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, _GenerationTag]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(
    value: object,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 (templates call it as Python's json.dumps)
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    # Jinja's own filter escapes HTML and sorts keys: prompts would differ from the reference.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: Any) -> NoReturn:
    raise jinja2.TemplateError(str(message))


def _strftime_now(form: str) -> str:
    return datetime.datetime.now().strftime(form)
