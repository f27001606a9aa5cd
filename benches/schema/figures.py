#!/usr/bin/env python3
"""Prints the gains and followers over a window from CSV files in the import format, computed by the service's statements.

    python benches/schema/figures.py videos.csv accounts.csv --start 2025-05-14 --end 2025-06-30
"""

import argparse
import csv
import json
import pathlib
import tempfile

import chdb

from verify import SQL, organization_statement, tuples

ROOT = pathlib.Path(__file__).resolve().parents[2]
COUNTERS = ["view_count", "like_count", "comment_count", "share_count", "saved_count", "play_count", "ig_play_count",
            "fb_play_count", "fb_like_count"]
ORG = "018f0000-0000-7000-8000-000000000001"


def parse_time(text):
    return text.replace("T", " ").rstrip("Z") if "T" in text else f"{text} 00:00:00"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+")
    options.add_argument("--start", required=True)
    options.add_argument("--end", required=True)
    options = options.parse_args()

    ids, rows = {}, {table: {} for table in ["videos", "accounts", "video_snapshots", "account_snapshots"]}
    for path in options.files:
        for line in csv.DictReader(open(path, encoding="utf-8", newline="")):
            platform, account, external = line["platform"], line.get("username"), line.get("external_id")
            subject = ids.setdefault((platform, account or f"/{external}"), len(ids) + 1)
            at = parse_time(line["observed_at"])
            names = ["follower_count", "following_count"] if external is None else COUNTERS
            counters = {name: int(line[name]) if line.get(name) else None for name in names}
            if account:
                rows["accounts"][subject] = dict(subject_id=subject, platform=platform, username=account)
            if external is None:
                key = (subject, at[:10])
                table = rows["account_snapshots"]
            else:
                video = ids.setdefault((platform, account, external), len(ids) + 1)
                posted = line["create_time"] and parse_time(line["create_time"])
                old = rows["videos"].get(video, {})
                rows["videos"][video] = dict(video_id=video, subject_id=subject, platform=platform,
                                             posted_at=posted or old.get("posted_at"))
                if platform == "tiktok":
                    counters["play_count"] = counters["view_count"]
                key = (subject, video, at[:10])
                table = rows["video_snapshots"]
            if any(value is not None for value in counters.values()):
                row = dict(zip(["subject_id", "date"] if external is None else ["subject_id", "video_id", "date"], key),
                           observed_at=at, **counters)
                if key not in table or table[key]["observed_at"] <= at:
                    table[key] = row

    with tempfile.TemporaryDirectory() as folder:
        db = chdb.connect(folder)
        for path in sorted((ROOT / "schemas").glob("*.sql")):
            for statement in path.read_text().split(";\n")[:-1]:
                db.query(statement)
        for table, by_key in rows.items():
            print(f"{table}: {len(by_key)}")
            if by_key:
                db.query(f"INSERT INTO {table} FORMAT JSONEachRow\n"
                         + "\n".join(json.dumps(dict(row, org_id=ORG)) for row in by_key.values()))
        subjects = tuples(*((ORG, subject) for subject in sorted(ids.values())))
        db.query(SQL["recompute"], params=dict(subjects=subjects, version=1, all_days=False))
        window = dict(org=ORG, start=options.start, end=options.end)
        for folder in ("daily", "levels"):
            name, _ = organization_statement(folder)
            print(db.query(SQL[name], "Vertical", params=window))


if __name__ == "__main__":
    main()
