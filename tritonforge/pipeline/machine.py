"""The GPUs of this machine, as NVIDIA's own program names them.

The form of its answers is from memory of NVIDIA's tools, not from a run: what does not have it counts as not known.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import socket
import subprocess
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "nvidia-smi"
# Without its daemon the driver is loaded for each call, which takes seconds with many GPUs.
TIMEOUT_S = 30.0
_ID_FILE = Path("/etc/machine-id")
_ID_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU.

    Args:
        index: Its number.
        name: Its product name.
        architecture: For example ``sm_90``; engines are compiled for one.
    """

    index: int
    name: str
    architecture: str


class Machine:
    """This machine; it is asked once."""

    @functools.cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        """Its GPUs, by number; none when there is no driver, or it does not say."""
        return find_gpus()

    @property
    def unknown(self) -> str:
        """Stands in the name of a cache entry for what nobody knows of this machine; no other's is equal."""
        return f"unknown (machine {self.id})"

    @functools.cached_property
    def id(self) -> str:
        """Tells this machine from others, and a container from the next of its image; neither can be read from it."""
        text = ""
        with suppress(OSError, UnicodeDecodeError):
            text = _ID_FILE.read_text(encoding="ascii").strip()
        return hashlib.sha256(f"tritonforge {text} {socket.gethostname()}".encode()).hexdigest()[:_ID_LENGTH]

    def architectures(self, indices: Collection[int] = ()) -> tuple[str, ...]:
        """The architectures of GPUs, each once, in the order of their numbers.

        Args:
            indices: Numbers of the GPUs; all when empty.
        """
        chosen = (gpu for gpu in self.gpus if not indices or gpu.index in indices)
        return tuple(dict.fromkeys(gpu.architecture for gpu in chosen))


def find_gpus() -> tuple[Gpu, ...]:
    """The GPUs that nvidia-smi lists; none when it is not installed, fails, or does not know architectures."""
    program = shutil.which(PROGRAM)
    if program is None:
        return ()
    argv = [program, "--query-gpu=index,name,compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ()
    if done.returncode != 0:
        return ()
    return tuple(gpu for line in done.stdout.splitlines() if (gpu := _parse(line)) is not None)


def _parse(line: str) -> Gpu | None:
    """``0, NVIDIA H100 80GB HBM3, 9.0``; None for a line that says anything else."""
    fields = [field.strip() for field in line.split(",")]
    if len(fields) < 3 or not fields[0].isdecimal():
        return None
    major, point, minor = fields[-1].partition(".")
    if not (point and major.isdecimal() and minor.isdecimal()):
        return None  # drivers before 2021 say [N/A]
    return Gpu(int(fields[0]), ", ".join(fields[1:-1]), f"sm_{major}{minor}")
