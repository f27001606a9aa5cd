"""Holds answers against an OpenAPI document: the status, the content type, the headers and the body of each have to be
what the document says of the operation. Reads both from standard input, as JSON; says what differs and fails."""

import json
import sys

from openapi_schema_validator import OAS31Validator, oas31_format_checker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

NAME = "urn:document"


def named(value):
    """A part of the document in which references name the document."""
    if isinstance(value, list):
        return [named(item) for item in value]
    if isinstance(value, dict):
        return {key: NAME + item if key == "$ref" else named(item) for key, item in value.items()}
    return value


told = json.load(sys.stdin)
document = named(told["document"])
registry = Registry().with_resource(NAME, DRAFT202012.create_resource(document))


def resolved(value):
    """What a reference refers to."""
    while "$ref" in value:
        reference, value = value["$ref"], document
        for part in reference.removeprefix(NAME + "#/").split("/"):
            value = value[part.replace("~1", "/").replace("~0", "~")]
    return value


def differences(answer):
    path, method = answer["operation"]
    responses = document["paths"][path][method]["responses"]
    if answer["status"] not in responses:
        yield "the status is not in the document"
        return
    response = resolved(responses[answer["status"]])
    for name in response.get("headers", {}):
        if name.lower() not in answer["headers"]:
            yield f"the header {name} is missing"
    content = response.get("content")
    if not content:
        if answer["text"]:
            yield "there is a body, and none in the document"
        return
    media = content.get(answer["type"])
    if media is None:
        yield f"the content type {answer['type']} is not in the document"
        return
    validator = OAS31Validator(media["schema"], registry=registry, format_checker=oas31_format_checker)
    for error in validator.iter_errors(json.loads(answer["text"])):
        yield f"{error.json_path}: {error.message}"


found = [(answer, difference) for answer in told["answers"] for difference in differences(answer)]
for answer, difference in found:
    print(*answer["operation"], answer["status"], difference, answer["text"][:500], sep=" | ")
sys.exit(1 if found or not told["answers"] else 0)
