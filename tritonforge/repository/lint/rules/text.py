"""The config as text: whether it parses, and what was left unfilled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from google.protobuf.descriptor import Descriptor
from tritonclient.grpc.model_config_pb2 import ModelConfig

from tritonforge.errors import did_you_mean
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.source import Field, Token, tokenize
from tritonforge.repository.lint.view import ModelView, RepositoryView

# ${x}  {{ x }}  %(x)s  @x@ : the styles of shell, Jinja, Python and CMake templates.
PLACEHOLDER = re.compile(r"\$\{[^}\n]*\}|\{\{[^}\n]*\}\}|%\([\w ]+\)s|@\w+@")
PLACEHOLDER_MARKS = ("${", "{{", "%(", "@", "<")
# Inside a string, <…> is a placeholder only when it reads as a description: "<s>" and "<|end|>" are special tokens.
DESCRIBING_ANGLES = re.compile(r"<[A-Za-z][\w./-]*[ _-][\w ./-]*>|<(path|dir|name|model|engine|tokenizer)\w*>", re.I)
KEY = re.compile(r"\bkey\s*:")
# Parameters without which a model cannot load; others fall back to a default with a warning in the log.
VITAL_PARAMETERS = frozenset({"gpt_model_path", "gpt_model_type", "tokenizer_dir", "engine_dir", "EXECUTION_ENV_PATH"})


def _parses(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.encoding_error is not None:
        yield Problem(f"cannot be read as UTF-8 text: {model.encoding_error}", "save the file as UTF-8", line=1)
    elif (found := model.parse_problem) is not None and (model.config is None or not list(_unknown_fields(model))):
        is_placeholder = any(token.line == found.line for token in _placeholders(model))
        if not is_placeholder:  # else it is reported as one
            advice = "correct the line; " + _advice(model, found.words)
            yield Problem(f"column {found.column}: {found.words}", advice, line=found.line)


def _fields_are_known(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.parse_problem is None:
        return
    for field, known in _unknown_fields(model):
        hint = did_you_mean(field.name, known)
        yield Problem(
            f"column {field.column}: there is no field {field.name!r} here; Triton refuses the whole config",
            hint or f"remove it; fields here: {', '.join(known)}",
            line=field.line,
        )


def _nothing_is_left_unfilled(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    for token in _placeholders(model):
        key = _parameter_of(model, token)
        is_vital = key is None or key in VITAL_PARAMETERS
        effect = "Triton refuses the config" if token.kind == "placeholder" else "it is taken literally"
        where = f" of parameter {key!r}" if key else ""
        yield Problem(
            f"column {token.column}: placeholder {token.text}{where} was left unfilled; {effect}",
            "put the value in its place",
            line=token.line,
            severity=Severity.ERROR if is_vital else Severity.WARNING,
        )


def _parameters_are_given_once(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None and model.text is not None
    if len(KEY.findall(model.text)) <= len(model.config.parameters):
        return  # nothing can be there twice; spares most configs the search for places
    keys = model.parameter_keys()
    for index, key in enumerate(keys):
        if key in keys[:index]:
            yield Problem(
                f"parameter {key!r} is given again; the last one counts, without a message",
                "keep one of them",
                line=model.line("parameters", index),
            )


def _placeholders(model: ModelView) -> list[Token]:
    """Placeholders with their places: tokens of kind ``string`` inside a string, ``placeholder`` outside."""
    text = model.text or ""
    written = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    if not any(mark in line for line in written for mark in PLACEHOLDER_MARKS):
        return []  # most configs; spares them the search for places
    tokens = ((token, _placeholder_in(token)) for token in tokenize(text))
    return [
        Token(token.kind, found, token.line, token.column + token.text.index(found)) for token, found in tokens if found
    ]


def _placeholder_in(token: Token) -> str | None:
    if token.kind == "placeholder":
        return token.text
    if token.kind != "string":
        return None
    inner = token.text.strip("\"'")
    match = PLACEHOLDER.search(inner) or DESCRIBING_ANGLES.fullmatch(inner)
    if match is None or (match.group().startswith("{{") and match.group() != inner):
        return None  # braces inside longer text are a chat template
    return match.group()


def _parameter_of(model: ModelView, token: Token) -> str | None:
    """Key of the parameter in whose value a token stands; None when it stands elsewhere."""
    if token.kind != "string":
        return None
    for key, entry in zip(model.parameter_keys(), _parameter_entries(model), strict=True):
        lines = [inner.line for inner in _scalars(entry)]
        if lines and min(lines) <= token.line <= max(lines):
            return key
    return None


def _parameter_entries(model: ModelView) -> list[Sequence[Field]]:
    return [entry.fields for field in model.fields if field.name == "parameters" for entry in field.entries]


def _scalars(fields: Sequence[Field]) -> Iterator[Token]:
    for field in fields:
        for entry in field.entries:
            if entry.scalar is not None:
                yield entry.scalar
            yield from _scalars(entry.fields)


def _unknown_fields(model: ModelView) -> Iterator[tuple[Field, list[str]]]:
    yield from _unknown_in(model.fields, ModelConfig.DESCRIPTOR)


def _unknown_in(fields: Sequence[Field], message: Descriptor) -> Iterator[tuple[Field, list[str]]]:
    known = message.fields_by_name
    for field in fields:
        if field.name not in known:
            yield field, sorted(known)
            continue
        inner = known[field.name].message_type
        if inner is not None:
            for entry in field.entries:
                yield from _unknown_in(entry.fields, inner)


def _advice(model: ModelView, words: str) -> str:
    if "//" in (model.text or ""):
        return "comments begin with #, not with //"
    if "multiple" in words or "oneof" in words:
        return "give it once"
    return "values are numbers, quoted text, true or false, or names such as TYPE_FP32 without quotes"


TEXT_RULES = (
    ModelRule(
        "config-parse",
        Severity.ERROR,
        "config.pbtxt is protobuf text format; Triton refuses a model whose config does not parse.",
        _parses,
        needs_config=False,
    ),
    ModelRule(
        "unknown-field",
        Severity.ERROR,
        "A field name that ModelConfig does not have stops the whole config.",
        _fields_are_known,
        needs_config=False,
    ),
    ModelRule(
        "placeholder",
        Severity.ERROR,
        "Templates filled by scripts leave unknown placeholders in place without a word. Outside quotes Triton refuses "
        "the config; inside quotes the backend gets the placeholder as the value.",
        _nothing_is_left_unfilled,
        needs_config=False,
    ),
    ModelRule(
        "parameter-duplicate",
        Severity.WARNING,
        "Parameters are a map: of two with one key the last one counts.",
        _parameters_are_given_once,
    ),
)
