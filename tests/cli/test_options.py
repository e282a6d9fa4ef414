from __future__ import annotations

from typing import Any

import pytest

from fedra.cli.options import parse_parameter


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
