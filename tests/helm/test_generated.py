"""values.schema.json and the README's table are made from values.yaml, and the schema is closed."""

import json
import runpy
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from tests.helm.chart import CHART, PROFILES, ROOT

OPEN = {"#/definitions/kubernetes", "#/definitions/strings"}
GENERATOR = runpy.run_path(str(ROOT / "helm" / "generate.py"))


def schema() -> dict[str, Any]:
    """The chart's schema."""
    whole: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return whole


def objects(node: object, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of an object in a schema, with where it is."""
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield path, node
        for key, inner in node.items():
            yield from objects(inner, f"{path}/{key}")
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from objects(inner, f"{path}/{index}")


def test_what_is_generated_is_up_to_date() -> None:
    """`make chart` writes it."""
    stale = [path.name for path, text in GENERATOR["generated"]().items() if path.read_text(encoding="utf-8") != text]
    assert stale == []


def test_the_schema_is_draft_07() -> None:
    assert schema()["$schema"] == "http://json-schema.org/draft-07/schema#"
    jsonschema.Draft7Validator.check_schema(schema())


def test_no_object_takes_unknown_keys() -> None:
    """But what is Kubernetes' own, what a parent chart shares, and maps whose values have a schema."""
    lax = [path for path, node in objects(schema(), "#") if not isinstance(node.get("additionalProperties"), dict)]
    lax = [path for path in lax if path not in {"#/definitions/kubernetes", "#/properties/global"}]
    closed = dict(objects(schema(), "#"))
    assert [path for path in lax if closed[path].get("additionalProperties") is not False] == []


def test_every_value_is_described() -> None:
    nameless = [
        path
        for path, node in objects(schema(), "#")
        if path.startswith("#/properties")
        for key, inner in node.get("properties", {}).items()
        if "description" not in inner and "properties" not in inner
    ]
    assert nameless == []


def test_the_readme_names_every_profile() -> None:
    readme = (CHART / "README.md").read_text(encoding="utf-8")
    assert [name for name in PROFILES if f"ci/{name}-values.yaml" not in readme] == []


@pytest.mark.parametrize(
    ("comment", "keywords"),
    [("# How many.", {}), ("# How many.\n# @schema {minimum: 1}", {"minimum": 1})],
)
def test_a_comment_becomes_description_and_keywords(comment: str, keywords: dict[str, Any]) -> None:
    text = f"{comment}\npods: 3\n"
    root = GENERATOR["yaml"].compose(text)
    made = GENERATOR["schema"](root, GENERATOR["Comments"](text))["properties"]["pods"]
    assert made == {"description": "How many.", "type": "integer", **keywords}
