"""Releases and containers of the table."""

from __future__ import annotations

import re

import pytest

from tritonforge.errors import SpecError, UnknownRelease
from tritonforge.releases.table import all_lines, all_releases, find_release, release_of_triton, version_key


def test_the_table_reaches_from_the_first_to_the_newest_release_in_order() -> None:
    names = [release.name for release in all_releases()]
    assert (names[0], names[-1]) == ("0.9.0", "1.2.1")
    assert {"0.16.0", "0.17.0", "0.17.0.post1", "0.18.2", "1.0.3.2510"} <= set(names)
    assert names == sorted(names, key=version_key)
    assert all_lines()[:3] == ("0.9", "0.10", "0.11")


def test_every_container_is_of_one_release_and_says_everything() -> None:
    containers = [container for release in all_releases() for container in release.containers]
    assert len(containers) == 28
    assert len({container.tag for container in containers}) == len(containers)
    for container in containers:
        assert re.fullmatch(r"\d\d\.\d\d", container.tag)
        assert container.image == f"nvcr.io/nvidia/tritonserver:{container.tag}-trtllm-python-py3"
        assert re.fullmatch(r"2\.\d+\.\d", container.triton)
        assert all((container.tensorrt, container.cuda, container.driver, container.python))
        assert 10 < container.image_gb < 40


def test_a_release_carries_what_its_container_carries() -> None:
    container = find_release("0.16.0").container
    assert (container.tag, container.triton, container.tensorrt) == ("24.12", "2.53.0", "10.7.0")
    assert (container.cuda, container.driver, container.python) == ("12.6.3", "560.35.05", "3.12.3")


def test_the_newest_container_of_a_release_is_the_one_that_is_used() -> None:
    assert [container.tag for container in find_release("0.9.0").containers] == ["24.04", "24.05"]
    assert find_release("1.2.1").container.tag == "26.07"


def test_a_release_belongs_to_the_line_of_its_first_two_numbers() -> None:
    assert find_release("0.17.0.post1").line == "0.17"
    assert find_release("1.0.3.2510").line == "1.0"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("0.16.1", ("0.16.0", "0.17.0")),
        ("0.16.0.dev2024112600", ("0.16.0", "0.17.0")),
        ("0.8.0", ("0.9.0",)),
        ("0.16", ("0.16.0",)),
        ("0.17", ("0.17.0", "0.17.0.post1")),
        ("1", ("1.0.0", "1.2.1")),
        ("9.9.9", ("1.2.1",)),
        ("1.10.0", ("1.2.1",)),
    ],
)
def test_an_unknown_release_is_an_error_with_the_nearest_known_ones(name: str, nearest: tuple[str, ...]) -> None:
    with pytest.raises(UnknownRelease, match=re.escape(f"release {name!r} is not in the release table")) as caught:
        find_release(name)
    assert caught.value.nearest == nearest
    assert isinstance(caught.value, SpecError)
    assert all(one in caught.value.message for one in nearest)


def test_releases_are_found_by_the_triton_that_carries_them() -> None:
    assert [release.name for release in release_of_triton("2.53.0")] == ["0.16.0"]
    assert [release.name for release in release_of_triton("2.59.1")] == ["0.20.0"]
    assert release_of_triton("2.1.0") == ()
