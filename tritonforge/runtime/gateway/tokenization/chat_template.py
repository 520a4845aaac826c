"""Chat templates in a sandbox, with the same environment as transformers gives them. Owns jinja2.

Templates come with a checkpoint and are not trusted: they see plain JSON values only, and cannot load other templates
or change what they are given. Their time is limited, and so is what they write or repeat. What the built-in filters
and methods of strings make in a single call is not (`'a'.ljust(10 ** 9)`).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

import jinja2
import jinja2.compiler
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.runtime
import jinja2.sandbox

from ...tensors import RequestRejected
from ..errors import VersionUnusable
from ..messages import Message
from .time_limit import TookTooLong, run_within

TIME_LIMIT_S = 2.0
# More text than the longest prompts of today have, which are of a million tokens.
_MOST_CHARACTERS = 4 * 2**20
_LARGEST_POWER_BITS = 4096


class ChatTemplate:
    """A compiled chat template.

    Args:
        source: Its Jinja text.
        special_tokens: Named special tokens (bos_token, …), which templates refer to.
        time_limit_s: Seconds after which rendering is given up.

    Raises:
        VersionUnusable: The text is not a valid template.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str], *, time_limit_s: float = TIME_LIMIT_S) -> None:
        try:
            self._template = _environment().from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise VersionUnusable(f"the chat template does not parse: line {error.lineno}: {error.message}") from error
        except (RecursionError, MemoryError, ValueError) as error:
            raise VersionUnusable(f"the chat template cannot be compiled: {type(error).__name__}: {error}") from error
        self._time_limit_s = time_limit_s
        self._special_tokens = dict(special_tokens)

    def render(self, messages: Sequence[Message]) -> str:
        """The prompt up to where the assistant's next reply begins.

        Raises:
            RequestRejected: The template refuses the messages, in its own words, fails on them, or reaches a limit.
        """
        # None counts as defined: templates test `tools is not none`, so absent ones are None and not left out.
        variables = {**self._special_tokens, "tools": None, "documents": None, "add_generation_prompt": True}
        try:
            return run_within(self._time_limit_s, lambda: self._write({"messages": list(messages), **variables}))
        except TookTooLong as error:
            limit_s = self._time_limit_s
            raise RequestRejected(f"messages: the chat template takes longer than {limit_s:g} s on them") from error
        except _LimitReached as error:
            raise RequestRejected(f"messages: the chat template {error}") from error
        except jinja2.TemplateError as error:
            raise RequestRejected(f"messages: the chat template refuses them: {error}") from error
        except Exception as error:
            raise RequestRejected(f"messages: the chat template fails: {type(error).__name__}: {error}") from error

    def _write(self, variables: Mapping[str, Any]) -> str:
        pieces, size = [], 0
        for piece in self._template.generate(variables):
            pieces.append(piece)
            size += len(piece)
            _check_size(size)
        return "".join(pieces)


class _LimitReached(Exception):
    """What a template did beyond its limits, as the rest of a sentence about it."""


class _CodeGenerator(jinja2.compiler.CodeGenerator):
    """Has the results of `~` checked, which no sandbox intercepts: in a loop they double."""

    def visit_Concat(self, node: jinja2.nodes.Concat, frame: jinja2.compiler.Frame) -> None:  # noqa: N802
        self.write("environment.bounded(")
        super().visit_Concat(node, frame)
        self.write(")")


class _Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """The sandbox, with limits for what a single operator makes."""

    code_generator_class = _CodeGenerator
    # jinja2 computes constant expressions while it compiles, except those with intercepted operators.
    intercepted_binops = frozenset({"+", "*", "**"})

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        """Compute `+`, `*` and `**`."""
        if operator == "+":
            return self.bounded(super().call_binop(context, operator, left, right))
        if operator == "*":
            for repeated, times in ((left, right), (right, left)):
                if isinstance(repeated, str | list | tuple) and isinstance(times, int):
                    _check_size(len(repeated) * times)
        elif isinstance(left, int) and isinstance(right, int) and left.bit_length() * right > _LARGEST_POWER_BITS:
            raise _LimitReached(f"computes {left} ** {right}")
        return super().call_binop(context, operator, left, right)

    def bounded(self, value: Any) -> Any:
        """The value itself, unless it is a text or a list that is too long."""
        if isinstance(value, str | list | tuple):
            _check_size(len(value))
        return value


@jinja2.pass_context
def _bounded_output(context: jinja2.runtime.Context, value: Any) -> Any:
    # What `{% set x %}…{% endset %}` keeps grows by outputs. Without a context jinja2 would compute it at load time.
    return cast("_Environment", context.environment).bounded(value)


def _check_size(characters: int) -> None:
    if characters > _MOST_CHARACTERS:
        raise _LimitReached(f"writes more than {_MOST_CHARACTERS} characters for them")


class _GenerationTag(jinja2.ext.Extension):
    """`{% generation %}…{% endgeneration %}` marks text for training; here it only shows its body."""

    tags = {"generation"}

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def _environment() -> jinja2.Environment:
    environment = _Environment(
        # What a template computes counts as rendering, which has a time limit.
        optimized=False,
        finalize=_bounded_output,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[jinja2.ext.loopcontrols, _GenerationTag],
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
