"""Triton's model configuration in protobuf's text format: reading it, and quoting strings for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.text_encoding import CEscape
from tritonclient.grpc.model_config_pb2 import ModelConfig

from tritonforge.errors import ConfigInvalid


def quoted(text: str) -> str:
    r"""A string literal of the text format that reads back as exactly `text`.

    Text that holds double quotes and no single ones (JSON) is put in single quotes, which the format allows, so that it
    stays readable.
    """
    # Escapes control characters, backslashes and both kinds of quotes.
    escaped = CEscape(text, as_utf8=True)  # type: ignore[arg-type]  # with as_utf8 it takes text
    if '"' in text and "'" not in text:
        return "'" + escaped.replace('\\"', '"') + "'"
    return '"' + escaped.replace("\\'", "'") + '"'


@dataclass(frozen=True, slots=True)
class ParseProblem:
    """Why a text is not a ModelConfig.

    Args:
        line: Line counted from 1.
        column: Column counted from 1.
        words: What protobuf says, without the place and the quoted line that it puts in front.
    """

    line: int
    column: int
    words: str


def try_parse(text: str, *, allow_unknown: bool = False) -> ModelConfig | ParseProblem:
    """Parse a config.pbtxt, or say why that is not possible.

    Args:
        text: Its content.
        allow_unknown: Whether fields that ModelConfig does not have are passed over.
    """
    config = ModelConfig()
    try:
        text_format.Parse(text, config, allow_unknown_field=allow_unknown)
    except text_format.ParseError as error:
        line, column = error.GetLine() or 1, error.GetColumn() or 1
        words = str(error).removeprefix(f"{line}:{column} : ")
        return ParseProblem(line, column, words.rsplit("': ", 1)[-1])
    except ValueError as error:  # a number that protobuf reads and then has no room for
        return ParseProblem(1, 1, str(error))
    except RecursionError:
        return ParseProblem(1, 1, "messages are nested too deeply")
    return config


def parse_config(text: str, *, file: Path | str) -> ModelConfig:
    """Parse a config.pbtxt.

    Args:
        text: Its content.
        file: Its path, for the message.

    Raises:
        ConfigInvalid: The text is not a ModelConfig; names line and column.
    """
    config = try_parse(text)
    if isinstance(config, ParseProblem):
        raise ConfigInvalid(file, f"column {config.column}: {config.words}", line=config.line)
    return config


def read_config(file: Path) -> ModelConfig:
    """Read and parse a config.pbtxt.

    Raises:
        ConfigInvalid: There is no such file, it is not UTF-8, or it is not a ModelConfig.
    """
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigInvalid(file, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigInvalid(file, f"is not UTF-8 text (byte {error.start})") from error
    return parse_config(text, file=file)


def name_of(enum: EnumTypeWrapper, number: int) -> str:
    """The name of an enum's value; the number itself when it has none, which the text format allows."""
    return str(enum.Name(number)) if number in enum.values() else str(number)


def parameter_of(config: ModelConfig, key: str) -> str | None:
    """The text of one of the model's `parameters`, or None when it is not given."""
    if key not in config.parameters:
        return None
    value: str = config.parameters[key].string_value
    return value
