"""A repository as the rules see it: folders, parsed configs, and the versions that Triton would load."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from tritonforge.errors import TritonforgeError
from tritonforge.formats.trtllm_engine import CONFIG_NAME as ENGINE_CONFIG_NAME
from tritonforge.formats.trtllm_engine import EngineInfo, read_engine_folder
from tritonforge.repository.layout import CONFIG_NAME
from tritonforge.repository.lint.source import Field, find_entries, find_line, read_fields
from tritonforge.repository.pbtxt import ParseProblem, parameter_of, try_parse

RESERVED_FOLDERS = frozenset({"warmup", "initial_state", "configs"})  # skipped by Triton inside a model folder
PLATFORM_BACKENDS = {
    "tensorrt_plan": "tensorrt",
    "onnxruntime_onnx": "onnxruntime",
    "pytorch_libtorch": "pytorch",
    "torch_aoti": "pytorch",
    "tensorflow_graphdef": "tensorflow",
    "tensorflow_savedmodel": "tensorflow",
}
# Files by which Triton guesses the backend when the config does not name one.
FILE_BACKENDS = {
    "model.savedmodel": "tensorflow",
    "model.graphdef": "tensorflow",
    "model.plan": "tensorrt",
    "model.onnx": "onnxruntime",
    "model.xml": "openvino",
    "model.pt": "pytorch",
    "model.pt2": "pytorch",
    "model.py": "python",
}
LEADING_NUMBER = re.compile(r"\s*[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class VersionFolder:
    """A folder in a model folder that Triton looks at as a version.

    Args:
        path: The folder.
        number: The number that Triton reads from its name; None when it reads none.
    """

    path: Path
    number: int | None

    @property
    def is_exact(self) -> bool:
        """The name is the number and nothing else, which is the folder that Triton then opens."""
        return self.number is not None and self.path.name == str(self.number)


@dataclass(frozen=True, slots=True)
class OwnEngine:
    """An engine in a version folder.

    Args:
        number: The version.
        folder: Its folder.
        info: What the engine says of itself; None when it cannot be read.
        problem: Why it cannot be read; None when it can.
    """

    number: int
    folder: Path
    info: EngineInfo | None
    problem: TritonforgeError | None


@dataclass(frozen=True)
class ModelView:
    """One folder at the root of a repository.

    Args:
        folder: The folder.
        text: Content of its config.pbtxt; None when there is none or it is not text.
        config: The parsed config, unknown fields left out; None when it cannot be parsed.
        parse_problem: Why it cannot be parsed.
        encoding_error: Why the config is not text, when it is not.
    """

    folder: Path
    text: str | None
    config: ModelConfig | None
    parse_problem: ParseProblem | None
    encoding_error: str | None = None

    @property
    def name(self) -> str:
        """Name of the folder, which is the model's name for Triton."""
        return self.folder.name

    @property
    def config_file(self) -> Path:
        """Path of the config, which may not exist."""
        return self.folder / CONFIG_NAME

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The config's fields with their places."""
        return read_fields(self.text or "")

    def line(self, *path: str | int) -> int | None:
        """Line of a part of the config: ``line("input", 2, "dims")``."""
        return find_line(self.fields, path)

    def is_written(self, *path: str) -> bool:
        """Whether a field is given in the text, also with its default value."""
        fields = self.fields
        for name in path:
            entries = find_entries(fields, name)
            if not entries:
                return False
            fields = entries[0].fields
        return True

    @cached_property
    def entries(self) -> Sequence[Path]:
        """What is in the folder, sorted."""
        return sorted(self.folder.iterdir())

    @cached_property
    def version_folders(self) -> Sequence[VersionFolder]:
        """The folders that Triton looks at as versions, in the order of their names."""
        folders = [path for path in self.entries if path.is_dir() and path.name not in RESERVED_FOLDERS]
        return [VersionFolder(path, _version_number(path.name)) for path in folders]

    @cached_property
    def versions(self) -> Mapping[int, Path]:
        """Usable version folders by number, lowest first."""
        exact = {version.number: version.path for version in self.version_folders if version.is_exact}
        return {number: exact[number] for number in sorted(number for number in exact if number is not None)}

    @cached_property
    def loaded_versions(self) -> Sequence[int]:
        """Version numbers that Triton would load by the version policy, lowest first."""
        numbers = list(self.versions)
        if self.config is None or not self.config.HasField("version_policy"):
            return numbers[-1:]
        policy = self.config.version_policy
        match policy.WhichOneof("policy_choice"):
            case "latest":
                count = policy.latest.num_versions
                return numbers[-count:] if count else []
            case "specific":
                return [number for number in numbers if number in policy.specific.versions]
            case _:
                return numbers

    @cached_property
    def engines(self) -> Sequence[OwnEngine]:
        """TensorRT-LLM engines in the version folders that Triton loads."""
        folders = {number: self.versions[number] for number in self.loaded_versions}
        held = {number: folder for number, folder in folders.items() if (folder / ENGINE_CONFIG_NAME).is_file()}
        return [_own_engine(number, folder) for number, folder in held.items()]

    @property
    def is_ensemble(self) -> bool:
        """Triton runs it as an ensemble."""
        return self.config is not None and (
            self.config.platform == "ensemble" or self.config.HasField("ensemble_scheduling")
        )

    @cached_property
    def backend(self) -> str | None:
        """The backend that Triton would use, by config or by the files in the first folder; None when it finds none."""
        config = self.config
        if config is not None and config.backend:
            return str(config.backend)
        if config is not None and config.platform in PLATFORM_BACKENDS:
            return PLATFORM_BACKENDS[config.platform]
        if config is not None and config.default_model_filename:
            return FILE_BACKENDS.get(config.default_model_filename)
        first = next((path for path in self.entries if path.is_dir()), None)
        names = {path.name for path in first.iterdir()} if first is not None else set()
        return next((backend for file, backend in FILE_BACKENDS.items() if file in names), None)

    def parameter(self, key: str) -> str | None:
        """Text of a parameter; None when it is not given."""
        return None if self.config is None else parameter_of(self.config, key)

    def parameter_line(self, key: str) -> int | None:
        """Line of a parameter."""
        for index, name in enumerate(self.parameter_keys()):
            if name == key:
                return self.line("parameters", index)
        return self.line("parameters")

    def parameter_keys(self) -> list[str]:
        """Keys of the parameters in the order in which they are written, repeated ones too."""
        entries = [entry for field in self.fields if field.name == "parameters" for entry in field.entries]
        tokens = [
            next((f.entries[0].scalar for f in entry.fields if f.name == "key" and f.entries), None)
            for entry in entries
        ]
        return ["" if token is None else token.text.strip("\"'") for token in tokens]


@dataclass(frozen=True)
class RepositoryView:
    """A repository.

    Args:
        root: Its folder.
        models: Its folders by name.
        checked: Names of the folders to report on.
    """

    root: Path
    models: Mapping[str, ModelView]
    checked: frozenset[str]

    @property
    def checked_models(self) -> list[ModelView]:
        """The folders to report on, by name."""
        return [self.models[name] for name in sorted(self.checked)]


def view_repository(root: Path, *, beside: Path | None = None) -> RepositoryView:
    """Read a repository.

    Args:
        root: Its folder.
        beside: Another repository whose models surround those in `root`, and give way to models of the same name.
    """
    own = {path.name: view_model(path) for path in sorted(root.iterdir()) if path.is_dir()}
    others = {path.name: view_model(path) for path in sorted(beside.iterdir()) if path.is_dir()} if beside else {}
    return RepositoryView(root, others | own, frozenset(own))


def view_model(folder: Path) -> ModelView:
    """Read one model folder and its config."""
    file = folder / CONFIG_NAME
    try:
        if not file.is_file():
            return ModelView(folder, None, None, None)
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return ModelView(folder, None, None, None, str(error))
    parsed = try_parse(text)
    if not isinstance(parsed, ParseProblem):
        return ModelView(folder, text, parsed, None)
    # Once more without the unknown fields, so that all else in the config is checked in the same run.
    known = try_parse(text, allow_unknown=True)
    if isinstance(known, ParseProblem):
        return ModelView(folder, text, None, known)
    return ModelView(folder, text, known, parsed)


def _own_engine(number: int, folder: Path) -> OwnEngine:
    try:
        return OwnEngine(number, folder, read_engine_folder(folder), None)
    except TritonforgeError as error:
        return OwnEngine(number, folder, None, error)


def _version_number(name: str) -> int | None:
    """The number that Triton reads from a folder's name, as C's strtoll does: it stops at the first odd character."""
    if len(name) > 1 and name.startswith("0"):
        return None  # ignored by Triton with a warning
    match = LEADING_NUMBER.match(name)
    return int(match.group()) if match else None
