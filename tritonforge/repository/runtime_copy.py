"""Copies the runtime package into a version folder, compiled so that Triton's import writes nothing there.

Python writes `__pycache__` beside what it imports. In a version folder that makes the folder newer than what Triton has
loaded, and the next load reloads a version that is serving. A cache with the ``unchecked-hash`` flag is taken as it is.
"""

from __future__ import annotations

import importlib.util
import py_compile
import shutil
from pathlib import Path

import tritonforge
from tritonforge.errors import TemplateError
from tritonforge.repository.files import naming

RUNTIME_FOLDER = "tritonforge_runtime"
# Which part of the runtime each kind of Python model runs; modules at the package's top are shared by all.
RUNTIME_PARTS = {"gateway": "gateway", "openvino": "openvino", "llmapi": "llmapi"}


def copy_runtime(part: str, version_folder: Path) -> None:
    """Copy the runtime's shared modules and one of its parts to ``<version_folder>/tritonforge_runtime``.

    Args:
        part: Sub-package of the runtime.
        version_folder: Folder that holds model.py.

    Raises:
        PublishFailed: A file cannot be written.
    """
    package = Path(tritonforge.__file__).parent / "runtime"
    target = version_folder / RUNTIME_FOLDER
    # One by one: shutil.copytree tells of a full disk once per file.
    for module in (*sorted(package.glob("*.py")), *sorted((package / part).rglob("*.py"))):
        copy = target / module.relative_to(package)
        with naming(copy):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(module, copy)


def compile_python(model_folder: Path) -> None:
    """Compile every Python file below a model folder for the running Python, never to be checked against its source.

    Raises:
        TemplateError: A file is not valid Python.
    """
    for source in sorted(model_folder.rglob("*.py")):
        cache = Path(importlib.util.cache_from_source(str(source)))
        shown = source.relative_to(model_folder.parent)  # in tracebacks; the staging folder would be gone by then
        try:
            with naming(cache):
                py_compile.compile(
                    str(source),
                    cfile=str(cache),
                    dfile=str(shown),
                    doraise=True,
                    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
                )
        except py_compile.PyCompileError as error:
            raise TemplateError(str(shown), error.msg.strip()) from error
