"""Rotary scaling: read, written, and applied to frequencies."""

import math
from pathlib import Path

import pytest

from tests.support.rotary import llama3_scaling
from tritonforge.errors import CorruptFile
from tritonforge.formats.json_fields import JsonFields
from tritonforge.formats.rotary import RotaryScaling

LLAMA3 = llama3_scaling()


def read(values: dict[str, object]) -> RotaryScaling:
    return RotaryScaling.from_json(JsonFields(values, Path("config.json")))


@pytest.mark.parametrize("values", [LLAMA3, {"type": "linear", "factor": 2.0}, LLAMA3 | {"type": "llama3"}])
def test_what_is_read_is_written_again(values: dict[str, object]) -> None:
    assert read(values).to_json() == values


@pytest.mark.parametrize("key", [key for key in LLAMA3 if key != "rope_type"])
def test_a_missing_parameter_is_named(key: str) -> None:
    with pytest.raises(CorruptFile, match=key):
        read({name: value for name, value in LLAMA3.items() if name != key})


def test_another_kind_is_refused_under_the_key_that_named_it() -> None:
    with pytest.raises(CorruptFile, match='rope_type is "yarn"; expected linear or llama3'):
        read({"rope_type": "yarn", "factor": 2.0})


def test_the_newer_key_counts_when_the_two_disagree() -> None:
    scaling = read(LLAMA3 | {"type": "linear"})
    assert scaling.kind == "llama3"
    assert scaling.to_json() == LLAMA3 | {"type": "llama3"}


def test_linear_scaling_divides_every_frequency() -> None:
    assert read({"type": "linear", "factor": 4.0}).stretched(0.5) == 0.125


@pytest.mark.parametrize(
    ("wavelength", "divided_by"),
    [
        (8193.0, 8.0),  # longer than original / low_freq_factor
        (2047.0, 1.0),  # shorter than original / high_freq_factor
        (8192 / 2.5, 1 / (0.5 / 8 + 0.5)),  # in the middle of the two, counted in turns
    ],
)
def test_llama3_scaling_stretches_long_waves_only(wavelength: float, divided_by: float) -> None:
    frequency = 2 * math.pi / wavelength
    assert read(LLAMA3).stretched(frequency) == pytest.approx(frequency / divided_by)
