"""Hooks of schemathesis: replace most generated values by values that a client would know and no schema can express.

Valid ids become ids of the tenant, names become new ones, and dates become days with history, four times out of five.
Values that are meant to be invalid stay.

TIDEMARK_TEST_IDS is the path of a JSON file with the ids: accounts and their usernames, creators, links (a creator and its
account), videos and internal_ids, collections, marks (a collection and a video), shares (a collection and its share),
webhooks, deliveries (a webhook and one of its deliveries), the token of a share and the key. The first quarter of each list is for all operations except deletes; each other id is
deleted once."""

import copy
import datetime
import itertools
import json
import os
import random
import re
import uuid
from urllib.parse import unquote

import requests
import schemathesis
from schemathesis.generation.modes import GenerationMode

with open(os.environ["TIDEMARK_TEST_IDS"], encoding="utf-8") as file:
    IDS = json.load(file)
SHARE_TOKEN, KEY = IDS.pop("share_token"), IDS.pop("key")
USERNAMES = dict(zip(IDS["accounts"], IDS.pop("usernames")))
STABLE = {kind: ids[: len(ids) // 4] for kind, ids in IDS.items()}
DELETABLE = {kind: ids[len(ids) // 4 :] for kind, ids in IDS.items()}

ID_PARAMETERS = {
    "account_id": "accounts",
    "account_ids": "accounts",
    "collection_id": "collections",
    "creator_id": "creators",
    "import_id": "imports",
    "video_id": "videos",
    "video_ids": "videos",
    "webhook_id": "webhooks",
    "instagram_post_ids": "internal_ids",
    "tiktok_video_ids": "internal_ids",
}
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
NUMBER = re.compile(r"[0-9]{1,18}")
SHORT_LINK = re.compile(r"//v[mt]\.|^\s*v[mt]\.|tiktok\.com/t/|/share/(?!video/)")
IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,255}")
USERNAME_IN_PATH = re.compile(r"(?:@|%40)[A-Za-z0-9._]{1,30}")
count = itertools.count()
random_source = random.Random(1)


def mostly():
    return random_source.random() < 0.8


def is_id(kind, value):
    if kind == "internal_ids":
        return NUMBER.fullmatch(value) if isinstance(value, str) else type(value) is int and abs(value) < 2**63
    return isinstance(value, str) and UUID.fullmatch(value)


def pick_id(kind, method):
    if method == "DELETE" and DELETABLE[kind]:
        return DELETABLE[kind].pop()
    return STABLE[kind][next(count) % len(STABLE[kind])]


def replace_ids(kind, value, method):
    if isinstance(value, list):
        return [replace_ids(kind, item, method) for item in value]
    if isinstance(value, str) and "," in value:
        return ",".join(replace_ids(kind, item, method) for item in value.split(","))
    if is_id(kind, value) and mostly():
        return str(pick_id(kind, method)) if isinstance(value, str) else pick_id(kind, method)
    return value


def is_day(value):
    try:
        return isinstance(value, str) and bool(datetime.date.fromisoformat(value))
    except ValueError:
        return False


def set_window(values):
    """Sets the dates of a window to days with history, or removes them if the period is not custom."""
    if not all(is_day(values.get(name, "2000-01-01")) for name in ("start_date", "end_date")):
        return
    if values.get("period") in ("7d", "30d", "90d"):
        values.pop("start_date", None)
        values.pop("end_date", None)
    elif "start_date" in values or "end_date" in values or values.get("period") == "custom":
        today = datetime.date.today()
        values["start_date"] = str(today - datetime.timedelta(days=next(count) % 9))
        values["end_date"] = str(today)


def set_new_name(body):
    """Names an account or video that is not tracked yet. Short links are always replaced: generated ones do not resolve."""
    platform, identifier = body.get("platform"), body.get("identifier")
    if "username" in body and mostly():
        body["username"] = f"tide.{next(count)}.new"
    if platform == "instagram" and identifier and (mostly() or SHORT_LINK.search(identifier)):
        body["identifier"] = f"Tide{next(count):07}"
    if platform == "tiktok" and identifier and (mostly() or SHORT_LINK.search(identifier)):
        body["identifier"] = str(7300000000000000000 + next(count))


def set_collection(path, body):
    """Sets a name of its own, rules and payouts that refer to nothing, and the time at which a share ends."""
    if path in {"/collections", "/collections/{collection_id}"} and isinstance(body.get("name"), str):
        body["name"] = f"Collection {next(count)}"
    if isinstance(body.get("rule"), dict):
        body["rule"] = {"min_views": next(count)}
    if isinstance(body.get("payout"), dict):
        body["payout"] = {"currency": "EUR", "per_thousand_views": "1.5"}
    if body.get("expires_at") is not None:
        body["expires_at"] = "2100-01-01"


def set_webhook(path, body):
    """Sets a receiver that is allowed and down, and a filter that refers to nothing."""
    if path in {"/webhooks", "/webhooks/{webhook_id}"} and "url" in body:
        body["url"] = f"https://127.0.0.1:1/{next(count)}"
    if isinstance(body.get("filter"), dict):
        body["filter"] = None


@schemathesis.hook
def after_call(context, case, response):
    """Deletes new webhooks, of which an organization has few, unless later requests refer to them."""
    is_new = case.operation.path == "/webhooks" and response.status_code == 201
    if is_new and case.meta is not None and case.meta.phase.name.value != "stateful":
        url = f"{response.request.url.split('?')[0]}/{response.json()['data']['id']}"
        requests.delete(url, headers={"Authorization": f"Bearer {KEY}"}, timeout=10)


@schemathesis.hook
def before_call(context, case, kwargs):
    """Sends the token of a share where it is asked for."""
    headers = dict(kwargs.get("headers") or {})
    if case.operation.path.startswith("/shared") and headers.get("Authorization") == f"Bearer {KEY}":
        kwargs["headers"] = {**headers, "Authorization": f"Bearer {SHARE_TOKEN}"}


@schemathesis.hook
def filter_case(context, case):
    """Removes invalid path values that become valid on the wire, because escapes are sent unchanged."""
    account = (case.path_parameters or {}).get("account_id")
    is_invalid = case.meta is not None and case.meta.generation.mode == GenerationMode.NEGATIVE
    return not (is_invalid and isinstance(account, str) and "%40" in account)


@schemathesis.hook
def map_case(context, case):
    is_valid = case.meta.generation.mode == GenerationMode.POSITIVE
    # Cases share their parts with later cases.
    path, query, body = map(copy.copy, (case.path_parameters, case.query, case.body))
    # Stateful requests may take a null from a response.
    for name, kind in ID_PARAMETERS.items():
        if path and is_valid and str(path.get(name)) == "None" and name in path:
            path[name] = pick_id(kind, case.method)
    if path and {"creator_id", "account_id"} <= set(path) and all(is_id("links", path[name]) for name in path):
        if mostly():
            path["creator_id"], path["account_id"] = pick_id("links", case.method)
    elif path and {"collection_id", "video_id"} <= set(path) and mostly():
        path["collection_id"], path["video_id"] = pick_id("marks", case.method)
    elif path and "delivery_id" in path and mostly():
        path["webhook_id"], path["delivery_id"] = pick_id("deliveries", "POST")
    elif path and "share_id" in path and mostly():
        path["collection_id"], path["share_id"] = pick_id("shares", case.method)
    elif path:
        for name, kind in ID_PARAMETERS.items():
            if name in path:
                path[name] = replace_ids(kind, path[name], case.method)
        if USERNAME_IN_PATH.fullmatch(str(path.get("account_id"))) and mostly():
            path["account_id"] = "@" + USERNAMES[pick_id("accounts", case.method)]
    for values in (query, body):
        if isinstance(values, dict):
            for name, kind in ID_PARAMETERS.items():
                # A list may be meant to be too long, and replaced ids repeat.
                if name in values and (is_valid or not name.endswith("_ids")):
                    values[name] = replace_ids(kind, values[name], "GET")
            if mostly() and (query is not values or "start_date" in values or "period" in values):
                set_window(values)
            if case.method == "POST" and is_valid:
                set_new_name(values)
    if is_valid and isinstance(body, dict) and mostly():
        set_collection(case.operation.path, body)
    if is_valid and isinstance(body, dict) and mostly():
        set_webhook(case.operation.path, body)
    changes = body.get("set") if isinstance(body, dict) else None
    if isinstance(changes, dict) and "creator_id" in changes:
        body["set"] = {**changes, "creator_id": replace_ids("creators", changes["creator_id"], "GET")}
    # One of two lists is required.
    lists = {"instagram_post_ids", "tiktok_video_ids"}
    if lists <= {parameter.name for parameter in case.operation.query}:
        if is_valid and not lists & set(query or {}):
            query = {**(query or {}), "instagram_post_ids": str(pick_id("internal_ids", case.method))}
    # Generated cursors are invalid.
    if isinstance(query, dict) and isinstance(query.get("cursor"), str) and query["cursor"]:
        if mostly():
            del query["cursor"]
    if path and is_valid:
        # The assigned values are validated again, and escaped ones are invalid. None of them needs escapes.
        path = {name: unquote(value) if isinstance(value, str) else value for name, value in path.items()}
    case.path_parameters, case.query, case.body = path, query, body
    if case.headers:
        key = case.headers.get("Idempotency-Key")
        if isinstance(key, str) and IDEMPOTENCY_KEY.fullmatch(key):
            case.headers["Idempotency-Key"] = str(uuid.uuid4())
    return case
