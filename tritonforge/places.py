"""What several stages know about paths: the folder beside a repository, and names that Triton cannot take."""

from __future__ import annotations

import re
from pathlib import Path

# Triton's python backend starts its stub by a shell line without quoting. Observed on 2.51: with any of these in a path
# the load of a model never comes back; with * [ and { that depends on what else is there, ~ # and ! do no harm.
UNSAFE_IN_SHELL = re.compile(r"""[\s'"$;&|()<>`\\?*\[{]""")


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
