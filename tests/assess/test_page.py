"""The page as a file: it refers to nothing, escapes everything, and its policy names its own script and style."""

from __future__ import annotations

import json
import re

from tests.assess.samples import assessment
from tests.audit.pages import Page

from fedra.assess import assessment_page
from fedra.pages import content_hash

HOSTILE = "<script>alert(1)</script> \"' </title> &amp;"


def test_it_refers_to_nothing_outside_itself() -> None:
    page = Page(assessment_page(assessment()))
    for tag, attributes in page.tags:
        assert "src" not in attributes, tag
        assert not (attributes.get("href") or "#").lstrip("#").startswith(("http", "/")), tag
    assert not [tag for tag, _ in page.tags if tag in ("link", "img", "iframe")]


def test_its_policy_is_of_its_own_script_and_style() -> None:
    text = assessment_page(assessment())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert f"script-src '{content_hash(script)}'" in policy
    assert f"style-src '{content_hash(style)}'" in policy
    assert policy.startswith("default-src 'none'")


def test_labels_and_titles_are_only_text() -> None:
    text = assessment_page(assessment(HOSTILE), title=HOSTILE)
    assert "<script>alert" not in text
    assert len(re.findall("<script", text)) == 2
    (data,) = re.findall(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(data)["lines"][1]["name"].startswith("<script>alert(1)")


def test_tables_have_headings_and_names() -> None:
    text = assessment_page(assessment())
    assert text.count('scope="col"') == 7 + 4 + 7 + 6 + 8 + 7
    assert text.count('role="region" aria-label=') == 6
    assert len(re.findall(r"<h1>", text)) == 1
