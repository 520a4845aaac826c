"""TensorRT-LLM releases and the containers that carry them."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from tritonforge.errors import UnknownRelease
from tritonforge.releases.files import read_data

_NUMBER = re.compile(r"\d+")
_MOST_DIGITS = 18  # more than any release has, and fewer than Python refuses to read


@dataclass(frozen=True, slots=True)
class Container:
    """A container of Triton that carries a release.

    Args:
        tag: Year and month, for example ``24.12``.
        image: Full name of the image.
        triton: Version of the Triton server in it.
        tensorrt: Version of TensorRT.
        cuda: Version of CUDA.
        driver: Version of the NVIDIA driver that it was made for.
        python: Version of Python.
        image_gb: Compressed size in GB as published.
        backend: Tag of tensorrtllm_backend that goes with it; None where there is none.
    """

    tag: str
    image: str
    triton: str
    tensorrt: str
    cuda: str
    driver: str
    python: str
    image_gb: float
    backend: str | None


@dataclass(frozen=True, slots=True)
class Release:
    """A release of TensorRT-LLM.

    Args:
        name: As upstream writes it, for example ``0.17.0.post1``.
        containers: Containers that carry it, oldest first; at least one.
    """

    name: str
    containers: tuple[Container, ...] = field(repr=False)

    @property
    def line(self) -> str:
        """The line that it belongs to, for example ``0.16``; options, tensors and parameters go by the line."""
        return ".".join(self.name.split(".")[:2])

    @property
    def container(self) -> Container:
        """The newest container that carries it."""
        return self.containers[-1]


def all_releases() -> tuple[Release, ...]:
    """Every known release, oldest first."""
    data = read_data("containers")
    containers: dict[str, list[Container]] = {}
    for row in data["containers"]:
        containers.setdefault(row["release"], []).append(_container(row, data["image"]))
    releases = [Release(name, tuple(sorted(found, key=_age))) for name, found in containers.items()]
    return tuple(sorted(releases, key=lambda release: version_key(release.name)))


def all_lines() -> tuple[str, ...]:
    """Every known line, oldest first."""
    return tuple(dict.fromkeys(release.line for release in all_releases()))


def spans(have: Sequence[str]) -> str:
    """Lines in words: ``0.12 to 0.16``, ``0.11 on``; empty for none.

    Args:
        have: Some of the known lines, oldest first.
    """
    lines, words = all_lines(), []
    for _, group in groupby(enumerate(have), key=lambda pair: lines.index(pair[1]) - pair[0]):
        first, *others = (line for _, line in group)
        last = others[-1] if others else first
        words.append(f"{first} on" if last == lines[-1] else first if first == last else f"{first} to {last}")
    return " and ".join(words)


def find_release(name: str) -> Release:
    """The release of a name.

    Args:
        name: For example ``0.16.0``.

    Raises:
        UnknownRelease: The table does not have it; the error names the nearest ones.
    """
    for release in all_releases():
        if release.name == name:
            return release
    raise UnknownRelease(name, _nearest(name))


def release_of_triton(version: str) -> tuple[Release, ...]:
    """Releases whose containers carry a version of Triton, oldest first; empty when none is known.

    Args:
        version: For example ``2.53.0``.
    """
    return tuple(one for one in all_releases() if any(container.triton == version for container in one.containers))


def version_key(text: str) -> tuple[int, ...]:
    """What releases, lines and container tags are ordered by: their numbers."""
    return tuple(int(number[:_MOST_DIGITS]) for number in _NUMBER.findall(text))


def covers(row: Mapping[str, Any], line: str) -> bool:
    """Whether a row of a data file is about a line.

    Args:
        row: It may have ``since`` and ``until``: the first and the last line that it is about.
        line: For example ``0.16``.
    """
    number = version_key(line)
    late_enough = "since" not in row or version_key(row["since"]) <= number
    return late_enough and ("until" not in row or number <= version_key(row["until"]))


def _container(row: dict[str, Any], image: str) -> Container:
    return Container(
        tag=row["container"],
        image=row.get("image", image.format(container=row["container"])),
        triton=row["triton"],
        tensorrt=row["tensorrt"],
        cuda=row["cuda"],
        driver=row["driver"],
        python=row["python"],
        image_gb=float(row["image_gb"]),
        backend=row.get("backend"),
    )


def _age(container: Container) -> tuple[int, ...]:
    return version_key(container.tag)


def _nearest(name: str) -> Sequence[str]:
    """The first and last of a line whose name it is, else the known releases before and after it."""
    known = [release.name for release in all_releases()]
    inside = [one for one in known if one.startswith(f"{name}.")]
    if inside:
        return tuple(dict.fromkeys((inside[0], inside[-1])))
    place = bisect([version_key(one) for one in known], version_key(name))
    return known[max(place - 1, 0) : place + 1]
