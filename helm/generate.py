"""Make values.schema.json and the table of values in README.md from the commented values.yaml.

A comment above a key is its description; a line `# @schema {...}` in it adds JSON Schema keywords, written as YAML. The
type comes from the default, and an object takes no other keys than those in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parent / "spectacular-bid"
VALUES, SCHEMA, README = CHART / "values.yaml", CHART / "values.schema.json", CHART / "README.md"
BEGIN, END = "<!-- values: generated -->\n", "<!-- end of values -->\n"
MARK = "@schema "

JsonSchema = dict[str, Any]  # Any: a schema is a tree of JSON values

DEFINITIONS: JsonSchema = {
    "strings": {"type": "object", "additionalProperties": {"type": "string"}},
    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
    "kubernetes": {"description": "As Kubernetes has it, which checks it.", "type": "object"},
    "variable": {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "value": {"type": "string"},
            "valueFrom": {"$ref": "#/definitions/kubernetes"},
        },
    },
}
GLOBAL: JsonSchema = {"description": "What a parent chart shares.", "type": "object"}
TYPES = {"str": "string", "bool": "boolean", "int": "integer", "seq": "array", "map": "object"}


def main() -> None:
    """Write both files."""
    for path, text in generated().items():
        path.write_text(text, encoding="utf-8")


def generated() -> dict[Path, str]:
    """What the files should hold."""
    text = VALUES.read_text(encoding="utf-8")
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    comments = Comments(text)
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    return {
        SCHEMA: json.dumps(schema(root, comments), indent=2) + "\n",
        README: before + BEGIN + table(root, comments) + END + rest.split(END)[1],
    }


class Comments:
    """The comments of a YAML text, by the line of the key below them."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def above(self, key: yaml.Node) -> tuple[str, JsonSchema]:
        """The description of a key, and the keywords of its schema."""
        words: list[str] = []
        keywords: JsonSchema = {}
        for line in self._block(key.start_mark.line):
            if line.startswith(MARK):
                keywords |= yaml.safe_load(line.removeprefix(MARK))
            else:
                words.append(line)
        return " ".join(words), keywords

    def _block(self, line: int) -> Iterator[str]:
        first = line
        while first > 0 and self._lines[first - 1].lstrip().startswith("#"):
            first -= 1
        yield from (text.strip().removeprefix("#").strip() for text in self._lines[first:line])


def schema(root: yaml.MappingNode, comments: Comments) -> JsonSchema:
    """The schema of the whole file."""
    whole = _of_mapping(root, comments)
    whole["properties"]["global"] = GLOBAL  # Helm adds it by itself
    return {"$schema": "http://json-schema.org/draft-07/schema#", **whole, "definitions": DEFINITIONS}


def _of_mapping(node: yaml.MappingNode, comments: Comments) -> JsonSchema:
    properties = {}
    for key, value in node.value:
        description, keywords = comments.above(key)
        properties[key.value] = ({"description": description} if description else {}) | _of_value(
            value, keywords, comments
        )
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _of_value(node: yaml.Node, keywords: JsonSchema, comments: Comments) -> JsonSchema:
    if "$ref" in keywords:
        return {"allOf": [keywords]}  # draft-07 ignores what stands beside a $ref, and so the description
    if isinstance(node, yaml.MappingNode) and not keywords:
        return _of_mapping(node, comments)
    return {"type": TYPES[node.tag.rpartition(":")[2]]} | keywords


def table(root: yaml.MappingNode, comments: Comments) -> str:
    """The values as a Markdown table."""
    rows = "".join(f"| `{path}` | {default} | {text} |\n" for path, default, text in _rows(root, comments, ""))
    return f"| value | default | meaning |\n|---|---|---|\n{rows}"


def _rows(node: yaml.MappingNode, comments: Comments, path: str) -> Iterator[tuple[str, str, str]]:
    for key, value in node.value:
        description, keywords = comments.above(key)
        if isinstance(value, yaml.MappingNode) and not keywords:
            if description:
                yield f"{path}{key.value}", "", description
            yield from _rows(value, comments, f"{path}{key.value}.")
        else:
            yield f"{path}{key.value}", _shown(value), re.sub(r"\|", r"\\|", description)


def _shown(node: yaml.Node) -> str:
    value = yaml.SafeLoader("").construct_object(node, deep=True)
    return "" if value == "" else f"`{value if isinstance(value, str) else json.dumps(value)}`"


if __name__ == "__main__":
    main()
