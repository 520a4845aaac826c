import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tritonforge.client.tensors import DTYPES, WireTensor, from_values, from_wire, plain_values, to_wire
from tritonforge.errors import ClientError

NUMERIC = sorted(name for name in DTYPES if name not in ("BYTES", "BF16"))
SHAPES = npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@given(st.data(), st.sampled_from(NUMERIC), SHAPES)
def test_numbers_survive_the_way_bit_by_bit(data: st.DataObject, datatype: str, shape: tuple[int, ...]):
    array = data.draw(npst.arrays(DTYPES[datatype], shape))
    wire = to_wire("x", array)
    assert (wire.datatype, wire.shape) == (datatype, shape)
    back = from_wire(wire)
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    assert back.shape == shape


@given(npst.arrays(np.uint16, SHAPES))
def test_bfloat16_survives_the_way_bit_by_bit(bits: np.ndarray):
    array = bits.view(ml_dtypes.bfloat16)
    wire = to_wire("x", array)
    assert wire.datatype == "BF16"
    assert from_wire(wire).tobytes() == bits.tobytes()


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_texts_of_any_bytes_survive_the_way(values: list[bytes]):
    array = np.empty(len(values), np.object_)
    array[:] = values
    assert from_wire(to_wire("x", array)).tolist() == values


def test_texts_may_be_str_and_numpy_texts():
    for array in (np.array(["é", "b"]), np.array(["é", "b"], object), np.array(["é".encode(), b"b"])):
        wire = to_wire("x", array)
        assert wire.datatype == "BYTES"
        assert wire.raw == b"\x02\0\0\0\xc3\xa9\x01\0\0\0b"


def test_big_endian_and_strided_arrays_travel_as_little_endian_c_order():
    array = np.arange(6, dtype=">i4").reshape(2, 3).T
    wire = to_wire("x", array)
    assert (wire.datatype, wire.shape) == ("INT32", (3, 2))
    assert np.frombuffer(wire.raw, "<i4").tolist() == [0, 3, 1, 4, 2, 5]


def test_a_dtype_without_a_datatype_names_the_input():
    with pytest.raises(ClientError, match=r"input 'x' is an array of complex64, which has no tensor datatype"):
        to_wire("x", np.zeros(1, np.complex64))


def test_an_object_that_is_no_text_is_named():
    with pytest.raises(ClientError, match="input 'x' holds a int; expected str or bytes"):
        to_wire("x", np.array([1, "a"], object))


@pytest.mark.parametrize(
    ("datatype", "shape", "raw", "problem"),
    [
        ("FP32", (2,), b"1234", "has 4 bytes, expected 8 for FP32 [2]"),
        ("BYTES", (1,), b"\x01\0", "ends in the middle of a length"),
        ("BYTES", (1,), b"\x05\0\0\0ab", "ends in the middle of an element"),
        ("BYTES", (2,), b"\x01\0\0\0a", "has 1 elements, expected 2"),
        ("FP4", (1,), b"1", "unknown datatype 'FP4'"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(datatype: str, shape: tuple[int, ...], raw: bytes, problem: str):
    with pytest.raises(ClientError) as caught:
        from_wire(WireTensor("y", datatype, shape, raw))
    assert problem in caught.value.message


def test_json_values_become_arrays_of_their_datatype():
    assert from_values("y", "FP16", [2], [1, 2.5]).dtype == np.float16
    assert from_values("y", "BYTES", [1, 2], [["a", "é"]]).tolist() == [[b"a", "é".encode()]]
    with pytest.raises(ClientError, match=r"output 'y' is not INT8 \[2\]"):
        from_values("y", "INT8", [2], [1, 2, 3])


@given(st.data(), st.sampled_from([*NUMERIC, "BF16"]), st.integers(0, 5))
def test_plain_values_are_those_of_the_array(data: st.DataObject, datatype: str, count: int):
    raw = data.draw(st.binary(min_size=count * DTYPES[datatype].itemsize, max_size=count * DTYPES[datatype].itemsize))
    raw = bytes(byte & 1 for byte in raw) if datatype == "BOOL" else raw
    array = from_wire(WireTensor("y", datatype, (count,), raw))
    np.testing.assert_equal(plain_values("y", datatype, raw), array.tolist())


def test_half_an_element_is_refused():
    with pytest.raises(ClientError, match="3 bytes, which is not a whole number of INT32 elements"):
        plain_values("y", "INT32", b"abc")
