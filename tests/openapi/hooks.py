"""Gives the requests that schemathesis makes up something to find: where an operation takes an id and the made-up value
has the form of one, a real one takes its place, four times out of five. What else a client knows and no schema can say
goes the same way: a new name for every request, and days of which there is history. Values that are meant to be wrong stay.

TIDEMARK_TEST_IDS names a file with the ids, as JSON: accounts and their usernames, creators, links (a creator and its
account), videos and internal_ids. What is taken away is taken from their ends and only once; everything else uses their
beginnings."""

import copy
import datetime
import itertools
import json
import os
import random
import re
import uuid
from urllib.parse import unquote

import schemathesis
from schemathesis.generation.modes import GenerationMode

with open(os.environ["TIDEMARK_TEST_IDS"], encoding="utf-8") as file:
    IDS = json.load(file)
USERNAMES = dict(zip(IDS["accounts"], IDS.pop("usernames")))
LASTING = {kind: ids[: len(ids) // 4] for kind, ids in IDS.items()}
FLEETING = {kind: ids[len(ids) // 4 :] for kind, ids in IDS.items()}

KINDS = {
    "account_id": "accounts",
    "account_ids": "accounts",
    "creator_id": "creators",
    "video_id": "videos",
    "video_ids": "videos",
    "instagram_post_ids": "internal_ids",
    "tiktok_video_ids": "internal_ids",
}
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
NUMBER = re.compile(r"[0-9]{1,18}")
SHORT_LINK = re.compile(r"//v[mt]\.|^\s*v[mt]\.|tiktok\.com/t/")
NAME = re.compile(r"[!-~]{1,255}")
# As a path has it.
USERNAME = re.compile(r"(?:@|%40)[A-Za-z0-9._]{1,30}")
count = itertools.count()
chance = random.Random(1)


def mostly():
    return chance.random() < 0.8


def is_id(kind, value):
    if kind == "internal_ids":
        return NUMBER.fullmatch(value) if isinstance(value, str) else type(value) is int and abs(value) < 2**63
    return isinstance(value, str) and UUID.fullmatch(value)


def pick(kind, method):
    if method == "DELETE" and FLEETING[kind]:
        return FLEETING[kind].pop()
    return LASTING[kind][next(count) % len(LASTING[kind])]


def known(kind, value, method):
    if isinstance(value, list):
        return [known(kind, item, method) for item in value]
    if isinstance(value, str) and "," in value:
        return ",".join(known(kind, item, method) for item in value.split(","))
    if is_id(kind, value) and mostly():
        return str(pick(kind, method)) if isinstance(value, str) else pick(kind, method)
    return value


def is_day(value):
    try:
        return isinstance(value, str) and bool(datetime.date.fromisoformat(value))
    except ValueError:
        return False


def settle_window(values):
    """Makes two days a window of days that there are, and leaves them out where the period has a name."""
    if not all(is_day(values.get(name, "2000-01-01")) for name in ("start_date", "end_date")):
        return
    if values.get("period") in ("7d", "30d", "90d"):
        values.pop("start_date", None)
        values.pop("end_date", None)
    elif "start_date" in values or "end_date" in values or values.get("period") == "custom":
        today = datetime.date.today()
        values["start_date"] = str(today - datetime.timedelta(days=next(count) % 9))
        values["end_date"] = str(today)


def name_anew(body):
    """Names an account or a video that is not tracked yet, most times. A short link that is made up leads nowhere, which
    only the platform knows: there is always something else in its place."""
    platform, identifier = body.get("platform"), body.get("identifier")
    if "username" in body and mostly():
        body["username"] = f"tide.{next(count)}.anew"
    if platform == "instagram" and identifier and mostly():
        body["identifier"] = f"Tide{next(count):07}"
    if platform == "tiktok" and identifier and (mostly() or SHORT_LINK.search(identifier)):
        body["identifier"] = str(7300000000000000000 + next(count))


@schemathesis.hook
def filter_case(context, case):
    """Leaves out values of a path that are meant to be wrong and come out right on the wire: escapes are sent as they are."""
    account = (case.path_parameters or {}).get("account_id")
    wrong = case.meta is not None and case.meta.generation.mode == GenerationMode.NEGATIVE
    return not (wrong and isinstance(account, str) and "%40" in account)


@schemathesis.hook
def map_case(context, case):
    positive = case.meta.generation.mode == GenerationMode.POSITIVE
    # Cases share their parts with others that are yet to come.
    path, query, body = map(copy.copy, (case.path_parameters, case.query, case.body))
    # What follows on an answer may take from it what is null there.
    for name, kind in KINDS.items():
        if path and positive and str(path.get(name)) == "None" and name in path:
            path[name] = pick(kind, case.method)
    if path and {"creator_id", "account_id"} <= set(path) and all(is_id("links", path[name]) for name in path):
        if mostly():
            path["creator_id"], path["account_id"] = pick("links", case.method)
    elif path:
        for name, kind in KINDS.items():
            if name in path:
                path[name] = known(kind, path[name], case.method)
        if USERNAME.fullmatch(str(path.get("account_id"))) and mostly():
            path["account_id"] = "@" + USERNAMES[pick("accounts", case.method)]
    for values in (query, body):
        if isinstance(values, dict):
            for name, kind in KINDS.items():
                # A list may be meant to be too long, and known ids repeat themselves.
                fits = positive or not name.endswith("_ids")
                if name in values and fits:
                    values[name] = known(kind, values[name], "GET")
            if mostly() and (query is not values or "start_date" in values or "period" in values):
                settle_window(values)
            if case.method == "POST" and positive:
                name_anew(values)
    # One of two lists has to be there.
    lists = {"instagram_post_ids", "tiktok_video_ids"}
    if lists <= {parameter.name for parameter in case.operation.query}:
        if positive and not lists & set(query or {}):
            query = {**(query or {}), "instagram_post_ids": str(pick("internal_ids", case.method))}
    # A cursor is what an answer said; no made-up one is good.
    if isinstance(query, dict) and isinstance(query.get("cursor"), str) and query["cursor"]:
        if mostly():
            del query["cursor"]
    if path and positive:
        # What is assigned is judged by the document again, for which an escaped value is wrong. None of it needs escapes.
        path = {name: unquote(value) if isinstance(value, str) else value for name, value in path.items()}
    case.path_parameters, case.query, case.body = path, query, body
    if case.headers:
        name = case.headers.get("Idempotency-Key")
        if isinstance(name, str) and NAME.fullmatch(name):
            case.headers["Idempotency-Key"] = str(uuid.uuid4())
    return case
