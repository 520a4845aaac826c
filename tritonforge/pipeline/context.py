"""What all stages of one build share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonforge.events import OnProgress, ignore_progress
from tritonforge.pipeline.machine import Machine
from tritonforge.pipeline.sources import Sources
from tritonforge.places import forge_folder
from tritonforge.spec.load import LoadedSpec

# Folders in the one beside the repository: for what is being compiled, for imported GGUF files, for what was made once,
# and for what programs have written.
WORK, IMPORTS, CACHE, LOGS = "work", "checkpoints", "cache", "logs"


@dataclass(frozen=True, slots=True)
class BuildContext:
    """One build.

    Args:
        loaded: The specification.
        sources: The checkpoints that it names.
        machine: Where it runs.
        on_progress: Called with the bytes that a conversion has made so far and in all.
    """

    loaded: LoadedSpec
    sources: Sources
    machine: Machine
    on_progress: OnProgress = ignore_progress

    @classmethod
    def of(cls, loaded: LoadedSpec, *, on_progress: OnProgress = ignore_progress) -> BuildContext:
        """The context of a build of this specification on this machine. Writes nothing."""
        return cls(loaded, Sources(forge_folder(loaded.repository) / IMPORTS), Machine(), on_progress)

    @property
    def imports(self) -> Path:
        """Folder for imported GGUF files."""
        return forge_folder(self.loaded.repository) / IMPORTS

    @property
    def work(self) -> Path:
        """Folder for what is being compiled."""
        return forge_folder(self.loaded.repository) / WORK

    @property
    def logs(self) -> Path:
        """Folder for what programs have written."""
        return forge_folder(self.loaded.repository) / LOGS
