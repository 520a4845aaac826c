"""Typed reading of JSON: what other tools write is accepted, what cannot be meant is named."""

from pathlib import Path

import pytest

from tritonforge.errors import CheckpointNotFound, CorruptFile
from tritonforge.formats.json_fields import JsonFields, read_json_object


def fields(**values: object) -> JsonFields:
    return JsonFields(values, Path("config.json"))


def test_a_null_counts_as_absent() -> None:
    assert "a" not in fields(a=None)
    assert fields(a=None).integer("a", 3) == 3
    assert fields(a=None).nested("a") is None
    assert fields().strings("a") == ()


@pytest.mark.parametrize(("value", "expected"), [(7, 7), (4096.0, 4096)])
def test_whole_numbers_may_be_written_as_floats(value: object, expected: int) -> None:
    assert fields(a=value).integer("a") == expected


@pytest.mark.parametrize("value", [True, "7", 7.5, 0, -1, float("inf"), float("nan"), [7]])
def test_what_is_no_whole_number_is_named(value: object) -> None:
    with pytest.raises(CorruptFile, match=r"^config\.json: a is .*; expected a whole number of at least 1"):
        fields(a=value).integer("a")


@pytest.mark.parametrize("value", [0, -0.5, True, "1", float("inf"), float("nan"), 10**400])
def test_what_is_no_number_above_zero_is_named(value: object) -> None:
    with pytest.raises(CorruptFile, match="expected a number above 0"):
        fields(a=value).number("a")


@pytest.mark.parametrize("value", [0.05, 10.5, float("nan")])
def test_a_number_outside_its_range_is_named_with_the_range(value: float) -> None:
    with pytest.raises(CorruptFile, match=r"a is .*; expected a number from 0\.1 to 10$"):
        fields(a=value).number("a", least=0.1, most=10)


@pytest.mark.parametrize(("value", "expected"), [(True, True), (0, False), (1.0, True)])
def test_flags_may_be_numbers(value: object, expected: bool) -> None:
    assert fields(a=value).flag("a") is expected


@pytest.mark.parametrize("value", [2, "true", [], {}])
def test_what_is_no_flag_is_named(value: object) -> None:
    with pytest.raises(CorruptFile, match="expected true or false"):
        fields(a=value).flag("a")


def test_a_nested_key_is_named_by_its_path() -> None:
    inner = fields(a={"b": "x"}).nested("a")
    assert inner is not None
    with pytest.raises(CorruptFile, match=r'a\.b is "x"'):
        inner.integer("b")


def test_a_folder_or_nothing_in_place_of_the_file_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(CheckpointNotFound, match="no such file"):
        read_json_object(tmp_path / "missing.json")
    with pytest.raises(CorruptFile, match="is a folder; expected a regular file"):
        read_json_object(tmp_path)
