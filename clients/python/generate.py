"""Generates the types of the client from the OpenAPI document: generate.py DOCUMENT FOLDER

Writes types.py, a TypedDict for each object, and operations.py, an overload for each operation.
"""

import json
import keyword
import re
import sys
from pathlib import Path
from typing import Any

document: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
folder = Path(sys.argv[2])
HEADER = '"""{} Generated from docs/openapi.json: do not edit."""\n\n'
PRIMITIVES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
METHODS = ("get", "post", "patch", "put", "delete")

classes: dict[str, str] = {}
aliases: dict[str, str] = {}


def resolve(value: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in value:
        reference: str = value["$ref"]
        value = document
        for name in reference.split("/")[1:]:
            value = value[name]
    return value


def pascal(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def documentation(text: str | None, indent: str) -> str:
    if not text:
        return ""
    text = text.replace("\\", "\\\\").replace('"""', "'''").strip().replace("\n", f"\n{indent}")
    return f'{indent}"""{text}"""\n'


def type_of(schema: dict[str, Any], name: str) -> str:
    """The type of a schema; `name` is that of the TypedDict if it is an object."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1]
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    if "type" not in schema:
        choices = [type_of(choice, name) for choice in schema.get("anyOf", [])]
        return " | ".join(dict.fromkeys(choices)) or "Any"
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " | ".join(type_of_kind(kind, schema, name) for kind in types)


def type_of_kind(kind: str, schema: dict[str, Any], name: str) -> str:
    if kind == "array":
        return f"list[{type_of(schema['items'], name)}]"
    if kind != "object":
        return PRIMITIVES[kind]
    if "properties" in schema:
        required = schema.get("required", [])
        fields = {field: (value, field in required) for field, value in schema["properties"].items()}
        return typed_dict(name, fields, schema.get("description"))
    values = schema.get("additionalProperties")
    return f"dict[str, {type_of(values, name) if isinstance(values, dict) else 'Any'}]"


def quoted(text: str) -> str:
    """The type in quotes, if it names a class, which may follow."""
    names = re.findall(r"\b[A-Z]\w+", re.sub(r"Literal\[.*?\]|\bAny\b", "", text))
    return repr(text) if names else text


def typed_dict(name: str, fields: dict[str, tuple[dict[str, Any], bool]], description: str | None) -> str:
    """Adds a class, and returns its name."""
    types = {field: type_of(schema, name + pascal(field)) for field, (schema, _) in fields.items()}
    members = {
        field: quoted(types[field]) if is_required else f"NotRequired[{quoted(types[field])}]"
        for field, (_, is_required) in fields.items()
    }
    if all(field.isidentifier() and not keyword.iskeyword(field) for field in members):
        text = f"class {name}(TypedDict):\n{documentation(description, '    ')}"
        for field, member in members.items():
            text += f"    {field}: {member}\n{documentation(fields[field][0].get('description'), '    ')}"
        text += "" if members or description else "    pass\n"
    else:
        listed = "".join(f"    {field!r}: {member},\n" for field, member in members.items())
        text = f"{name} = TypedDict({name!r}, {{\n{listed}}})\n{documentation(description, '')}"
    if classes.setdefault(name, text) != text:
        sys.exit(f"two types have the name {name}")
    return name


def component(name: str, schema: dict[str, Any]) -> None:
    found = type_of(schema, name)
    if found != name:
        aliases[name] = f"{name} = {found}\n{documentation(schema.get('description'), '')}"


class Operation:
    def __init__(self, path: str, operation: dict[str, Any]) -> None:
        self.path = path
        self.summary: str = operation["summary"]
        name = pascal(operation["operationId"])
        parameters = [resolve(parameter) for parameter in operation.get("parameters", [])]
        self.parameters = {
            parameter["name"]: (
                {**parameter["schema"], "description": parameter.get("description")},
                parameter.get("required", False),
            )
            for parameter in parameters
            if parameter["in"] in ("path", "query")
        }
        self.parameters_type = f"types.{typed_dict(f'{name}Parameters', self.parameters, None)}" if self.parameters else None
        self.needs_parameters = any(is_required for _, is_required in self.parameters.values())
        self.body = self.type_of_body(resolve(operation.get("requestBody", {})), f"{name}Body")
        successes = {status: resolve(response) for status, response in operation["responses"].items() if status[0] == "2"}
        contents = [response["content"] for response in successes.values() if "content" in response]
        self.is_json = all("application/json" in content for content in contents)
        schemas = [content["application/json"]["schema"] for content in contents if self.is_json]
        self.result = self.named(type_of(schemas[0], f"{name}Response")) if schemas else "None"
        self.entry = ""
        if "cursor" in self.parameters:
            self.entry = self.named(type_of(schemas[0]["properties"]["data"]["items"], f"{name}ResponseData"))

    @staticmethod
    def named(name: str) -> str:
        return f"types.{name}" if name.isidentifier() else name

    def type_of_body(self, body: dict[str, Any], name: str) -> str | None:
        content = body.get("content", {})
        if "application/json" in content:
            return self.named(type_of(content["application/json"]["schema"], name))
        return "FileBody" if content else None

    def overload(self, method: str, result: str, options: str) -> str:
        parameters = ""
        if self.parameters_type:
            parameters = f", parameters: {self.parameters_type}{'' if self.needs_parameters else ' = ...'}"
        keywords = f"body: {self.body}, {options}" if self.body else options
        return (
            f"    @overload\n    def {method}(self, path: Literal[{self.path!r}]{parameters}, /, *, {keywords}) -> {result}:\n"
            f'        """{self.summary}"""\n\n'
        )


for name, schema in document["components"]["schemas"].items():
    component(name, schema)
operations = {
    method: [Operation(path, entry[method]) for path, entry in document["paths"].items() if method in entry] for method in METHODS
}

OPTIONS = "timeout: float | None = None"
KEYED = f"{OPTIONS}, idempotency_key: str | None = None"


def overloads(method: str, options: str, found: list[tuple[Operation, str]], implementation: str) -> str:
    text = "".join(operation.overload(method, result, options) for operation, result in found)
    if any(operation.body for operation, _ in found):
        options = f"body: Any = None, {options}"
    return (
        text
        + f"    def {method}(self, path: str, parameters: Any = None, /, *, {options}) -> Any:\n        return {implementation}\n\n"
    )


text = HEADER.format("The operations of the API, each with its types.")
text += "from abc import ABC, abstractmethod\nfrom typing import IO, Any, Literal, overload\n\nfrom . import types\nfrom .entries import Entries\n\n"
text += "FileBody = bytes | IO[bytes]\n\n\nclass Operations(ABC):\n"
for name in ("_request", "_list", "_export"):
    text += f"    @abstractmethod\n    def {name}(self, *arguments: Any, **options: Any) -> Any: ...\n\n"
for method in METHODS:
    found = [(operation, operation.result) for operation in operations[method] if operation.is_json]
    arguments = f'"{method.upper()}", path, parameters, timeout=timeout'
    if any(operation.body for operation, _ in found):
        arguments += ", body=body"
    is_keyed = method in ("post", "patch")
    if is_keyed:
        arguments += ", idempotency_key=idempotency_key"
    text += overloads(method, KEYED if is_keyed else OPTIONS, found, f"self._request({arguments})")
lists = [(operation, f"Entries[{operation.entry}, {operation.result}]") for operation in operations["get"] if operation.entry]
text += overloads("list", OPTIONS, lists, "self._list(path, parameters, timeout=timeout)")
exports = [(operation, "IO[bytes]") for operation in operations["get"] if operation.path.startswith("/export/")]
text += overloads("export", OPTIONS, exports, "self._export(path, parameters, timeout=timeout)")
(folder / "operations.py").write_text(text.rstrip() + "\n", encoding="utf-8")

text = HEADER.format("The types of the API.") + "from typing import Any, Literal, NotRequired, TypedDict\n\n"
text += "\n".join(aliases[name] for name in sorted(aliases)) + "\n\n"
text += "\n\n".join(classes[name] for name in sorted(classes))
(folder / "types.py").write_text(text, encoding="utf-8")
