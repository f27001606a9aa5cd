#!/usr/bin/env python3
"""A collector for Tidemark in one file, without dependencies: serves a JSON file by the contract of http-source.md.

    python3 http-source-example.py [--port 8490] [--data accounts.json]
    tidemark source check http://127.0.0.1:8490 --platform instagram --username tide.lines

Without --data it serves a small sample. For a collector of your own, replace `find_account` and `find_post`; the rest
implements the contract.
"""

import argparse
import hmac
import json
import os
from datetime import date, datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

PAGE = 20
TOKEN = os.environ.get("COLLECTOR_TOKEN")


class ContractError(Exception):
    """An error response of the contract."""

    STATUS = {"not_found": 404, "rate_limited": 429, "unauthorized": 401, "unavailable": 503, "unsupported": 501}

    def __init__(self, code, message):
        super().__init__(message)
        self.status = self.STATUS[code]
        self.body = {"error": {"code": code, "message": message}}


def sample():
    """An account on each platform with a post every other day, newest first as the contract requires."""
    today = datetime.now(timezone.utc).replace(hour=9, minute=0, second=0, microsecond=0)
    accounts = []
    for platform, kind in (("instagram", "reel"), ("tiktok", "video")):
        posts = []
        for number in range(45, 0, -1):
            posted = today - timedelta(days=2 * (46 - number))
            post = {
                # Ids are strings: not every language represents 64-bit integers exactly.
                "id": f"{platform_id(platform)}{number:04}",
                "description": f"Low water, part {number}",
                "media_type": kind,
                "duration": 21.5,
                "create_time": posted.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "view_count": 1000 * number,
                "like_count": 90 * number,
                "comment_count": 3 * number,
                # Unknown values are omitted or null, never 0.
                "share_count": None,
            }
            if platform == "instagram":
                post["shortcode"] = f"Ctide{number:04}"
            posts.append(post)
        accounts.append({
            "platform": platform,
            "profile": {"id": platform_id(platform), "username": "tide.lines", "name": "Tide Lines",
                        "description": "High and low water", "follower_count": 4200, "following_count": 17,
                        "post_count": len(posts)},
            "posts": posts,
        })
    return accounts


def platform_id(platform):
    return {"instagram": "17841400000000777", "tiktok": "7012345678901234567"}[platform]


def find_account(accounts, platform, username, account_id):
    """The account with this id, or with this username if no id is known: an id survives a rename."""
    for account in accounts:
        profile = account["profile"]
        wanted = profile["id"] == account_id if account_id else profile["username"] == username
        if account["platform"] == platform and wanted:
            return account
    raise ContractError("not_found", f"account @{username} does not exist on {platform}, or is private")


def find_post(accounts, platform, post_id, shortcode):
    """The post with this id, else with this shortcode."""
    for account in accounts:
        for post in account["posts"] if account["platform"] == platform else ():
            if post["id"] == post_id if post_id else post.get("shortcode") == shortcode:
                return post
    raise ContractError("not_found", "the post does not exist, or is private")


def page_of(account, query):
    """One page of an account's posts after the cursor, newest first, within max_posts and not_before."""
    posts = account["posts"]
    if "not_before" in query:
        oldest = date.fromisoformat(query["not_before"]).isoformat()
        posts = [post for post in posts if post["create_time"][:10] >= oldest]
    # The cursor is the last post sent, so new posts do not shift pages.
    ids = [post["id"] for post in posts]
    start = ids.index(query["cursor"]) + 1 if query.get("cursor") in ids else 0
    size = min(PAGE, int(query.get("max_posts", PAGE)))
    page = posts[start:start + size]
    more = bool(page) and start + size < len(posts)
    return {"profile": account["profile"], "posts": page, "next": page[-1]["id"] if more else None}


def respond(accounts, path, query):
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[:1] == ["v1"] and len(parts) == 4 and parts[2] == "accounts":
        return page_of(find_account(accounts, parts[1], parts[3], query.get("id")), query)
    if parts[:1] == ["v1"] and len(parts) == 3 and parts[2] == "posts":
        return {"post": find_post(accounts, parts[1], query.get("id"), query.get("shortcode"))}
    raise ContractError("not_found", "unknown path")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            credentials = self.headers.get("Authorization", "").encode()
            if TOKEN and not hmac.compare_digest(credentials, f"Bearer {TOKEN}".encode()):
                raise ContractError("unauthorized", "the token is missing or wrong")
            url = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            status, body = 200, respond(self.server.accounts, url.path, query)
        except ContractError as error:
            status, body = error.status, error.body
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8490)
    parser.add_argument("--data", help='a file of [{"platform": …, "profile": {…}, "posts": [newest first]}]')
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    server.accounts = json.load(open(options.data, encoding="utf-8")) if options.data else sample()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
