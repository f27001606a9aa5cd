"""Parses responses with a client that openapi-python-client generates from the document, and makes a request with it; checks them
with the types of clients/python.

Reads the document, the responses, a base URL, a key and ids of accounts from standard input as JSON. Prints what differs, and
fails if anything does. A value of an unknown name, a missing field and a field that the document lacks are differences."""

import importlib
import json
import pkgutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_overloads, get_type_hints, is_typeddict
from uuid import UUID

import attrs
import httpx

report = json.load(sys.stdin)
folder = Path(tempfile.mkdtemp())
(folder / "document.json").write_text(json.dumps(report["document"]), encoding="utf-8")
config = {"post_hooks": [], "content_type_overrides": {"application/vnd.apache.parquet": "application/octet-stream"}}
(folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
generated = subprocess.run(
    [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none", "--fail-on-warning"]
    + ["--path", folder / "document.json", "--output-path", folder / "client", "--config", folder / "config.yaml"],
    capture_output=True,
    text=True,
)
if generated.returncode != 0:
    sys.exit(f"the client cannot be generated: {generated.stdout}{generated.stderr}")
sys.path.insert(0, str(folder))
client_module = importlib.import_module("client")
client = client_module.AuthenticatedClient(
    base_url=report["base_url"], token=report["key"], raise_on_unexpected_status=True
)


def operations():
    api = importlib.import_module("client.api")
    for tag in pkgutil.iter_modules(api.__path__, "client.api."):
        for module in pkgutil.iter_modules(importlib.import_module(tag.name).__path__, tag.name + "."):
            yield module.name.rsplit(".", 1)[1].replace("_", ""), module.name


def undocumented(value, path=""):
    """Names the fields that no model declares. A model without declared fields is a map."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from undocumented(item, f"{path}[{index}]")
    elif attrs.has(type(value)):
        declared = [field.name for field in attrs.fields(type(value)) if field.name != "additional_properties"]
        for name in declared:
            yield from undocumented(getattr(value, name), f"{path}.{name}")
        others = getattr(value, "additional_properties", {})
        for name, item in others.items():
            if declared:
                yield f"{path}.{name}"
            yield from undocumented(item, f"{path}.{name}")


modules = dict(operations())
failures = []
for response in report["responses"]:
    name, status = response["operation"], response["status"]
    module = importlib.import_module(modules[name.lower()])
    try:
        parsed = module._parse_response(client=client, response=httpx.Response(status, json=response["body"]))
        failures += [f"{response['path']}: the document has no {field}" for field in undocumented(parsed)]
    except Exception as error:
        failures.append(f"{response['path']}: {error!r}: {json.dumps(response['body'])[:300]}")


def differences(value, expected, path=""):
    """Names where a value differs from its type, also by a field that the type lacks."""
    origin, arguments = get_origin(expected), get_args(expected)
    if is_typeddict(expected) and isinstance(value, dict):
        fields = get_type_hints(expected)
        for name in expected.__required_keys__ - value.keys():
            yield f"{path}.{name} is missing"
        for name in value.keys() - fields.keys():
            yield f"{path}.{name} is unknown"
        for name in value.keys() & fields.keys():
            yield from differences(value[name], fields[name], f"{path}.{name}")
    elif origin is list and isinstance(value, list):
        for index, item in enumerate(value):
            yield from differences(item, arguments[0], f"{path}[{index}]")
    elif origin is dict and isinstance(value, dict):
        for name, item in value.items():
            yield from differences(item, arguments[1], f"{path}.{name}")
    elif origin in (Union, UnionType):
        if all(any(differences(value, choice)) for choice in arguments):
            yield f"{path} is {value!r}, not {expected}"
    elif expected is Any or (origin is Literal and value in arguments):
        return
    elif not (type(value) is expected or (expected is float and type(value) is int)):
        yield f"{path} is {value!r}, not {expected}"


sys.path.insert(0, str(Path(__file__).parents[2] / "clients/python/src"))
operations_module = importlib.import_module("tidemark_client.operations")
types_of_paths = {}
for overload in get_overloads(operations_module.Operations.get):
    hints = get_type_hints(overload)
    types_of_paths[get_args(hints["path"])[0]] = hints["return"]
paths = {
    operation["operationId"]: path
    for path, methods in report["document"]["paths"].items()
    for method, operation in methods.items()
    if method == "get"
}
for response in report["responses"]:
    if response["operation"] in paths:
        found = differences(response["body"], types_of_paths[paths[response["operation"]]])
        failures += [f"{response['path']}: {difference}" for difference in found]

# The client repeats the parameter of a list.
ids = [UUID(id) for id in report["account_ids"]]
metrics = importlib.import_module(modules["getaccountmetrics"])
found = metrics.sync(client=client, account_ids=ids)
if set(found.data.additional_properties) != set(map(str, ids)):
    failures.append(f"getAccountMetrics of {ids}: {found}")
print(*failures, sep="\n")
sys.exit(1 if failures or not report["responses"] else 0)
