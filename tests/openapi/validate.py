"""Validates responses against an OpenAPI document: status, content type, headers and body.

Reads both from standard input as JSON, prints the differences, and fails if there are any."""

import json
import sys

from openapi_schema_validator import OAS31Validator, oas31_format_checker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

BASE_URI = "urn:document"


def with_absolute_references(value):
    if isinstance(value, list):
        return [with_absolute_references(item) for item in value]
    if isinstance(value, dict):
        return {
            key: BASE_URI + item if key == "$ref" else with_absolute_references(item)
            for key, item in value.items()
        }
    return value


report = json.load(sys.stdin)
document = with_absolute_references(report["document"])
registry = Registry().with_resource(BASE_URI, DRAFT202012.create_resource(document))


def resolve(value):
    while "$ref" in value:
        reference, value = value["$ref"], document
        for part in reference.removeprefix(BASE_URI + "#/").split("/"):
            value = value[part.replace("~1", "/").replace("~0", "~")]
    return value


def differences(response):
    path, method = response["operation"]
    documented = document["paths"][path][method]["responses"]
    if response["status"] not in documented:
        yield "the status is not in the document"
        return
    documented = resolve(documented[response["status"]])
    for name, header in documented.get("headers", {}).items():
        if resolve(header).get("required") and name.lower() not in response["headers"]:
            yield f"the header {name} is missing"
    content = documented.get("content")
    if not content:
        if response["text"]:
            yield "the document has no body"
        return
    kind = response["type"].split(";")[0]
    media = content.get(kind)
    if media is None:
        yield f"the content type {response['type']} is not in the document"
        return
    validator = OAS31Validator(media["schema"], registry=registry, format_checker=oas31_format_checker)
    text = response["text"]
    for error in validator.iter_errors(json.loads(text) if kind.endswith("json") else text):
        yield f"{error.json_path}: {error.message}"


found = [(response, difference) for response in report["responses"] for difference in differences(response)]
for response, difference in found:
    print(*response["operation"], response["status"], difference, response["text"][:500], sep=" | ")
sys.exit(1 if found or not report["responses"] else 0)
