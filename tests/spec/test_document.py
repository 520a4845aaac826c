"""YAML as YAML: syntax, duplicates, anchors, scalars."""

from __future__ import annotations

import pytest

from tritonforge.spec.document import MAX_DEPTH, read_document


def only_problem(text: str) -> tuple[int | None, str]:
    (problem,) = read_document(text).problems
    return problem.line, problem.text


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("False", False),
        ("yes", "yes"),
        ("on", "on"),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("010", 10),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("2026-99-99", "2026-99-99"),
        ("0.5", 0.5),
        ("1e3", 1000.0),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        ("0.16.0", "0.16.0"),
        ("'12'", "12"),
        ("=", "="),
        ("<<", "<<"),
    ],
)
def test_scalars_follow_the_core_schema(written: str, value: object) -> None:
    assert read_document(f"key: {written}\n").value == {"key": value}


def test_lines_are_those_of_keys_and_items() -> None:
    document = read_document("a:\n  - 1\n  -\n    b: {c: 2,\n        d: 3}\n")
    assert document.lines[("a",)] == 1
    assert document.lines[("a", 1)] == 4
    assert document.lines[("a", 1, "b", "d")] == 5
    assert document.line_of(("a", 1, "b", "missing")) == 4


@pytest.mark.parametrize("second", ["a", "'a'"])
def test_a_duplicate_key_names_both_lines(second: str) -> None:
    document = read_document(f"x:\n  a: 1\n  {second}: 2\n")
    (problem,) = document.problems
    assert (problem.path, problem.line, problem.text) == (
        ("x", "a"),
        3,
        "is given twice, first in line 2; expected once",
    )
    assert document.value == {"x": {"a": 1}}


def test_a_number_and_the_same_number_in_quotes_are_one_key() -> None:
    assert only_problem("1: a\n'1': b\n") == (2, "is given twice, first in line 1; expected once")


@pytest.mark.parametrize("key", ["true", "0.5", "~", ".nan"])
def test_keys_that_are_no_names_are_refused(key: str) -> None:
    assert only_problem(f"{key}: 1\n") == (1, f"a key is {key!r}; expected text or a whole number")


@pytest.mark.parametrize("text", ["? [a, b]\n: 1\n", "{[a]: 1}\n", "? {a: 1}\n: 2\n"])
def test_keys_that_are_trees_are_refused(text: str) -> None:
    assert only_problem(text) == (1, "a key is a list or a mapping; expected text or a whole number")


def test_anchors_and_aliases_are_refused_with_their_lines() -> None:
    document = read_document("a: &one 1\nb: *one\n")
    assert [(problem.line, problem.text.split(":")[0]) for problem in document.problems] == [(1, "&one"), (2, "*one")]
    assert "not part of forge.yaml" in document.problems[0].text


def test_aliases_that_multiply_are_refused_without_being_expanded() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert len(read_document("\n".join(lines)).problems) == 30 + 29 * 9


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!local", "!!str"])
def test_tags_are_refused_and_nothing_is_run(tag: str) -> None:
    line, text = only_problem(f"a: 1\nb: {tag} [id]\n")
    assert line == 2
    assert "tags are not part of forge.yaml" in text


def test_a_tab_in_the_indentation_says_so() -> None:
    assert only_problem("a:\n\tb: 1\n") == (2, "a tab where YAML allows only spaces")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1, 2\nb: 3\n", 2),
        ("a: 'never closed\nb: 1\n", 3),
        ("a: 1\n b: 2\n", 2),
        ("a: b: c\n", 1),
        ("a: *nowhere\n", 1),
        ("a: @x\n", 1),
        ("%YAML 9.9\n---\na: 1\n", 1),
        ("a: 1\n---\nb: 2\n", 2),
        ('a: "\\q"\n', 1),
    ],
)
def test_broken_syntax_names_its_line(text: str, line: int) -> None:
    document = read_document(text)
    assert document.problems[0].line == line
    assert document.value is None


def test_a_control_character_names_its_line() -> None:
    assert only_problem("a: 1\nb: x\0y\n") == (2, "holds the control character U+0000")


def test_endless_nesting_is_refused() -> None:
    assert only_problem("[" * 5000)[1] == f"not valid YAML: nested deeper than {MAX_DEPTH} levels"


def test_a_number_of_many_digits_is_refused_by_its_length() -> None:
    document = read_document("a: 1\nb: " + "9" * 5000 + "\n")
    assert document.problems[0].text == "is a number of 5000 digits; expected at most 40"
    assert document.unread == {("b",)}


def test_a_key_of_many_digits_is_refused() -> None:
    assert read_document("9" * 5000 + ": 1\n").problems
