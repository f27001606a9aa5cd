#!/usr/bin/env python3
"""A collector for Tidemark in one file, without dependencies: the contract of http-source.md over a file of JSON.

    python3 http-source-example.py [--port 8490] [--data accounts.json]
    tidemark source check http://127.0.0.1:8490 --platform instagram --username tide.lines

Without --data it serves a small sample. To make a collector of your own out of it, put your way of getting at the
data into `find_account` and `find_post`; what is around them is the contract.
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


class Refusal(Exception):
    """One of the ways in which the contract says no."""

    STATUS = {"not_found": 404, "rate_limited": 429, "unauthorized": 401, "unavailable": 503, "unsupported": 501}

    def __init__(self, code, message):
        super().__init__(message)
        self.status = self.STATUS[code]
        self.body = {"error": {"code": code, "message": message}}


def sample():
    """An account on each platform with a post every other day; newest first, as the contract wants them."""
    today = datetime.now(timezone.utc).replace(hour=9, minute=0, second=0, microsecond=0)
    accounts = []
    for platform, kind in (("instagram", "reel"), ("tiktok", "video")):
        posts = []
        for number in range(45, 0, -1):
            posted = today - timedelta(days=2 * (46 - number))
            post = {
                # A number of 64 bits is no number in every language: ids are texts.
                "id": f"{platform_id(platform)}{number:04}",
                "description": f"Low water, part {number}",
                "media_type": kind,
                "duration": 21.5,
                "create_time": posted.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "view_count": 1000 * number,
                "like_count": 90 * number,
                "comment_count": 3 * number,
                # What is not known is left out or null, never 0.
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
    """The account with this id; by its username only while no id is known. An id outlives a rename."""
    for account in accounts:
        profile = account["profile"]
        wanted = profile["id"] == account_id if account_id else profile["username"] == username
        if account["platform"] == platform and wanted:
            return account
    raise Refusal("not_found", f"there is no account @{username} on {platform}, or it is private")


def find_post(accounts, platform, post_id, shortcode):
    """The post with this id, or else with this shortcode."""
    for account in accounts:
        for post in account["posts"] if account["platform"] == platform else ():
            if post["id"] == post_id if post_id else post.get("shortcode") == shortcode:
                return post
    raise Refusal("not_found", "there is no such post, or it is private")


def page_of(account, query):
    """One page of an account's posts: the newest first, from the cursor on, as many and as old as is wanted."""
    posts = account["posts"]
    if "not_before" in query:
        oldest = date.fromisoformat(query["not_before"]).isoformat()
        posts = [post for post in posts if post["create_time"][:10] >= oldest]
    # The cursor names the last post that was sent, so posts that appear meanwhile shift nothing.
    ids = [post["id"] for post in posts]
    start = ids.index(query["cursor"]) + 1 if query.get("cursor") in ids else 0
    size = min(PAGE, int(query.get("max_posts", PAGE)))
    page = posts[start:start + size]
    more = bool(page) and start + size < len(posts)
    return {"profile": account["profile"], "posts": page, "next": page[-1]["id"] if more else None}


def answer(accounts, path, query):
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[:1] == ["v1"] and len(parts) == 4 and parts[2] == "accounts":
        return page_of(find_account(accounts, parts[1], parts[3], query.get("id")), query)
    if parts[:1] == ["v1"] and len(parts) == 3 and parts[2] == "posts":
        return {"post": find_post(accounts, parts[1], query.get("id"), query.get("shortcode"))}
    raise Refusal("not_found", "there is nothing at this address")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            told = self.headers.get("Authorization", "").encode()
            if TOKEN and not hmac.compare_digest(told, f"Bearer {TOKEN}".encode()):
                raise Refusal("unauthorized", "the token is missing or wrong")
            url = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            status, body = 200, answer(self.server.accounts, url.path, query)
        except Refusal as refusal:
            status, body = refusal.status, refusal.body
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
