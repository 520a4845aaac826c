"""Name, backend, platform, and the model file that the backend opens."""

from __future__ import annotations

from collections.abc import Iterator

from tritonforge.errors import did_you_mean
from tritonforge.places import UNSAFE_IN_SHELL
from tritonforge.repository.lint.finding import Severity
from tritonforge.repository.lint.rule import ModelRule, Problem
from tritonforge.repository.lint.view import PLATFORM_BACKENDS, ModelView, RepositoryView

# Backends that come with Triton or are published by its project.
KNOWN_BACKENDS = (
    "dali",
    "fil",
    "identity",
    "onnxruntime",
    "openvino",
    "python",
    "pytorch",
    "repeat",
    "square",
    "tensorflow",
    "tensorrt",
    "tensorrtllm",
    "vllm",
)
# For these the platform must agree with the backend; for all others Triton accepts any text.
PAIRED_BACKENDS = frozenset(PLATFORM_BACKENDS.values())
DEFAULT_FILES = {
    "dali": ("model.dali",),
    "onnxruntime": ("model.onnx",),
    "openvino": ("model.xml",),
    "python": ("model.py",),
    "pytorch": ("model.pt", "model.pt2"),
    "tensorrt": ("model.plan",),
    "vllm": ("model.json",),
}


def _name_is_the_folders(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    if model.config.name and model.config.name != model.name:
        yield Problem(
            f"name is {model.config.name!r}, but the folder is {model.name!r}; Triton refuses the model",
            f"set name: {model.name!r}, or leave name out",
            line=model.line("name"),
        )


def _backend_is_given(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    if model.is_ensemble or model.backend is not None:
        return
    if model.config.platform:
        yield Problem(
            f"platform is {model.config.platform!r}, which is none that Triton derives a backend from, and backend is "
            f"not given",
            f"write backend: {model.config.platform!r}, or one of {', '.join(KNOWN_BACKENDS)}",
            line=model.line("platform"),
        )
    elif "." not in model.name:  # else Triton takes what follows the first dot as the backend
        yield Problem(
            "backend is not given, and no file tells which it is; Triton refuses the model",
            f"write backend, for example one of {', '.join(KNOWN_BACKENDS)}",
        )


def _backend_is_known(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    backend = model.config.backend
    if not backend or backend in KNOWN_BACKENDS or "$" in backend:
        return
    near = did_you_mean(backend, KNOWN_BACKENDS)
    yield Problem(
        f"backend is {backend!r}, which is none of Triton's own; the server must have libtriton_{backend}.so",
        near or f"install that backend on the server; Triton's own: {', '.join(KNOWN_BACKENDS)}",
        line=model.line("backend"),
        severity=Severity.WARNING if near else Severity.INFO,
    )


def _platform_fits_the_backend(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    backend, platform = model.config.backend, model.config.platform
    if platform == "ensemble" and backend:
        yield Problem(
            f"platform is 'ensemble' and backend is {backend!r}; Triton refuses an ensemble with a backend",
            "remove backend",
            line=model.line("backend"),
        )
    if platform and backend in PAIRED_BACKENDS and PLATFORM_BACKENDS.get(platform) != backend:
        fitting = [name for name, owner in PLATFORM_BACKENDS.items() if owner == backend]
        yield Problem(
            f"platform is {platform!r}, which does not go with backend {backend!r}; Triton refuses the model",
            f"remove platform, or set it to {' or '.join(fitting)}",
            line=model.line("platform"),
        )


def _python_can_take_the_name(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    if model.backend != "python" or model.is_ensemble:
        return
    unsafe = UNSAFE_IN_SHELL.search(model.name)
    if unsafe is not None:
        yield Problem(
            f"the folder's name has {unsafe[0]!r} in it; Triton starts Python models by a shell line without quoting, "
            f"and loading this one never ends",
            "use letters, digits, '.', '_' and '-'",
            path=model.folder,
        )
    elif not model.name.isascii():
        yield Problem(
            f"the folder's name {model.name!r} is not ASCII; the import of a Python model fails where the server runs "
            f"without a UTF-8 locale",
            "use letters, digits, '.', '_' and '-'",
            path=model.folder,
            severity=Severity.WARNING,
        )


def _model_file_is_there(model: ModelView, _: RepositoryView) -> Iterator[Problem]:
    assert model.config is not None
    backend = model.backend or ""
    given = model.config.default_model_filename
    names = (given,) if given else DEFAULT_FILES.get(backend, ())
    if model.is_ensemble or not names:
        return
    for number in model.loaded_versions:
        folder = model.versions[number]
        if not any((folder / name).exists() for name in names):
            yield Problem(
                f"version {number} has no {' or '.join(names)}, which backend {backend!r} opens; it fails to load",
                f"put {names[0]} into {folder.name}/, or set default_model_filename",
                path=folder,
            )


BACKEND_RULES = (
    ModelRule(
        "name-mismatch", Severity.ERROR, "The name in a config must be the name of its folder.", _name_is_the_folders
    ),
    ModelRule(
        "backend-missing",
        Severity.ERROR,
        "Triton must know which backend runs a model, by backend, platform, or the name of the model file.",
        _backend_is_given,
    ),
    ModelRule(
        "backend-unknown",
        Severity.WARNING,
        "A backend that the server does not have is found only when the model is loaded.",
        _backend_is_known,
    ),
    ModelRule(
        "platform-mismatch",
        Severity.ERROR,
        "For tensorflow, tensorrt, onnxruntime and pytorch the platform must be one of the backend's.",
        _platform_fits_the_backend,
    ),
    ModelRule(
        "python-name",
        Severity.ERROR,
        "Triton's Python backend hands the model's path to a shell, unquoted: blanks, quotes and the like break it.",
        _python_can_take_the_name,
    ),
    ModelRule(
        "model-file-missing",
        Severity.ERROR,
        "The backend opens a file in the version folder: its default name, or default_model_filename.",
        _model_file_is_there,
    ),
)
