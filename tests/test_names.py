from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fedra.names import import_own, nearest, parse_parameter, parse_spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gamma=0.1", ("gamma", 0.1)),
        ("num-malicious=3", ("num_malicious", 3)),
        ("clamp=true", ("clamp", True)),
        ("widths=[3, 4]", ("widths", [3, 4])),
        ("variance=pooled", ("variance", "pooled")),
        ("z='max'", ("z", "max")),
        ("glove=a=b", ("glove", "a=b")),
        ("label=", ("label", "")),
        (" z = 1e-3", ("z", 1e-3)),
    ],
)
def test_a_value_is_toml_or_else_a_text(text: str, expected: tuple[str, Any]) -> None:
    name, value = parse_parameter(text, "--rule-param")
    assert (name, value) == expected
    assert type(value) is type(expected[1])


@pytest.mark.parametrize("text", ["gamma", "=3", ""])
def test_what_has_no_name_or_no_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"--rule-param '{text}' is not of the form NAME=VALUE"):
        parse_parameter(text, "--rule-param")


def test_a_name_with_parameters_is_taken_apart_as_a_shell_would() -> None:
    assert parse_spec("mlflow", "tracker", "") == ("mlflow", {})
    assert parse_spec("my:Rule cap=5 label='Capped at 5' on=true", "--add-rule", "") == (
        "my:Rule",
        {"cap": 5, "label": "Capped at 5", "on": True},
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "tracker '' has no name; write it so"),
        ("a 'b", 'tracker "a \'b": No closing quotation; write it so'),
        ("a b", "tracker a: 'b' is not of the form NAME=VALUE"),
    ],
)
def test_what_cannot_be_taken_apart_is_said(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_spec(text, "tracker", "write it so")


def test_the_nearest_name_is_offered_with_all_of_them() -> None:
    assert nearest("fedav", ["fedavg", "median"]) == "; did you mean 'fedavg'? valid: fedavg, median"
    assert nearest("zzz", ["fedavg"]) == "; valid: fedavg"
    assert nearest("x", []) == "; valid: none"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("json", "'json' is not of the form module:name"),
        ("os;x:y", "is not of the form module:name"),
        ("no_such_module_here:x", "there is no module 'no_such_module_here'"),
        ("json:dump_", "'json' has no 'dump_'; did you mean 'dump'"),
    ],
)
def test_own_code_that_is_not_there_is_an_error_that_names_it(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        import_own(name, "rule")


def test_own_code_is_what_stands_at_its_name() -> None:
    assert import_own("json:dumps", "rule") is json.dumps
