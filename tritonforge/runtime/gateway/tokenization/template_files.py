"""Where a checkpoint keeps its chat templates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import VersionUnusable
from .json_files import read_json_object

DEFAULT = "default"


def find_templates(folder: Path) -> Mapping[str, str]:
    """Sources of the chat templates by name; `default` is the one that is used. Empty when there are none.

    Files (`chat_template.jinja`, `additional_chat_templates/NAME.jinja`) replace whatever tokenizer_config.json holds,
    as in transformers 5.
    """
    files = {path.stem: path for path in sorted((folder / "additional_chat_templates").glob("*.jinja"))}
    default = folder / "chat_template.jinja"
    if default.is_file():
        files[DEFAULT] = default
    if files:
        return {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    return _templates_of_config(folder / "tokenizer_config.json")


def _templates_of_config(path: Path) -> Mapping[str, str]:
    value = read_json_object(path).get("chat_template")
    if value is None:
        return {}
    if isinstance(value, str):
        return {DEFAULT: value}
    try:
        return {str(entry["name"]): str(entry["template"]) for entry in value}
    except (TypeError, KeyError) as error:
        raise VersionUnusable(f"{path}: chat_template is neither a template nor a list of named ones") from error
