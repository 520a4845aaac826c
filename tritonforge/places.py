"""The folder beside a model repository, which several stages share. Pure but for following links."""

from __future__ import annotations

from pathlib import Path


def forge_folder(repository: Path) -> Path:
    """Folder for everything about a repository that Triton must not see, since it takes each folder inside for a model.

    It holds logs, the state of the server, locks, what is being built, staging, archive and history. Links are followed
    and ``..`` is resolved: all ways to one repository lead to one folder.

    Args:
        repository: The model repository, which need not exist yet.

    Returns:
        ``<repository>.forge``, absolute.
    """
    path = repository.resolve()
    return path.with_name(f"{path.name}.forge")
