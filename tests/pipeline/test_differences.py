"""What is said of a published version that is not what the specification asks for."""

from tritonforge.pipeline.differences import differences


def test_each_setting_that_differs_is_named_with_both_values() -> None:
    built = {"engine": {"precision": "int8", "runtime": {"num_threads": None}}, "limits": {"max_seq_len": 2048}}
    asked = {"engine": {"precision": "int4", "runtime": {"num_threads": None}}, "limits": {"max_seq_len": 4096}}

    assert differences(built, asked) == (
        "engine.precision was int8, is int4",
        "limits.max_seq_len was 2048, is 4096",
    )


def test_setting_that_is_on_one_side_only_is_named_too() -> None:
    assert differences({}, {"limits": {"max_seq_len": 64}}) == ("limits.max_seq_len was nothing, is 64",)


def test_equal_settings_differ_in_nothing() -> None:
    assert differences({"a": {"b": [1, 2]}}, {"a": {"b": [1, 2]}}) == ()


def test_a_setting_of_a_later_release_counts_only_when_it_is_chosen() -> None:
    built, asked = {"limits": {"max_seq_len": 64}}, {"limits": {"max_seq_len": 64, "max_beam_width": 1}}

    assert differences(built, asked, chosen={"limits": {"max_seq_len": 64}}) == ()
    assert differences(built, asked, chosen=asked) == ("limits.max_beam_width was nothing, is 1",)
