#!/usr/bin/env python3
"""Checks every statement of src/store against a model of docs/analytics.md written as plain loops.

    pip install chdb-core && python benches/schema/verify.py [--histories 500] [--seed 1]

Each history is an organization of its own: two accounts and two individually tracked videos, a few dozen observations in
any order, days observed again, gaps, falling, late and missing counters, videos posted before, after and at an unknown
time, videos that move between subjects, merge or go, and rollups recomputed in between and twice. Runs in a temporary
folder with merges stopped in half of the rounds.
"""

import argparse
import json
import pathlib
import random
import sys
import tempfile
import uuid
from datetime import date, datetime, timedelta, timezone

import chdb

ROOT = pathlib.Path(__file__).resolve().parents[2]
VIDEO = ["view", "like", "comment", "share", "saved", "play", "ig_play", "fb_play", "fb_like"]
ALL = VIDEO + ["follower"]
DAY0 = date(2026, 1, 1)
DAYS = 12
NEVER = "1970-01-01 00:00:00.000000"
SQL = {path.stem: path.read_text() for path in (ROOT / "src/store").rglob("*.sql")}


def tuples(*rows):
    """Rows as the text of an array of tuples, which chdb does not write by itself."""
    return "[" + ",".join("(" + ",".join(repr(value) for value in row) + ")" for row in rows) + "]"


def day(number):
    return DAY0 + timedelta(days=number)


class Engine:
    def __init__(self, folder):
        self.db = chdb.connect(folder)
        for path in sorted((ROOT / "schemas").glob("*.sql")):
            self.db.query(path.read_text())
            self.db.query(path.read_text())  # idempotent

    def run(self, sql, **params):
        self.db.query(sql, params=params)

    def rows(self, name, **params):
        text = str(self.db.query(SQL[name], "JSONEachRow", params=params))
        return [json.loads(line) for line in text.splitlines()]

    def insert(self, table, rows):
        if rows:
            self.db.query(f"INSERT INTO {table} FORMAT JSONEachRow\n" + "\n".join(json.dumps(row) for row in rows))


class History:
    """What an organization has been through, and what its numbers must be."""

    def __init__(self, rng):
        self.rng = rng
        self.org = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        self.next_id = 1
        self.accounts = {self.new_id(): rng.choice(["instagram", "tiktok"]) for _ in range(2)}
        self.videos = {}  # video -> subject, platform, posted
        self.facts = {}  # (subject, video) -> {day: (observed_at, counters)}
        self.profile = {subject: {} for subject in self.accounts}
        self.version = 0
        self.pending = {"video_snapshots": [], "account_snapshots": [], "videos": [], "accounts": []}
        self.touched = set()
        self.times = set()
        for subject, platform in self.accounts.items():
            self.put_account(subject, platform)
            for _ in range(rng.randint(0, 3)):
                self.add_video(subject, platform)
        for _ in range(2):
            self.add_video(None, rng.choice(["instagram", "tiktok"]))

    def new_id(self):
        self.next_id += 1
        return self.next_id

    def put_account(self, subject, platform, deleted=0):
        self.version += 1
        self.pending["accounts"].append(
            dict(org_id=self.org, subject_id=subject, id=str(uuid.uuid4()), platform=platform, username=f"u{subject}",
                 is_active=True, added_at="2026-01-01 00:00:00", version=self.version, is_deleted=deleted))

    def put_video(self, video, deleted=0):
        self.version += 1
        v = self.videos[video]
        posted = v["posted"] and f"{v['posted']} 23:30:00"
        self.pending["videos"].append(
            dict(org_id=self.org, video_id=video, id=str(uuid.uuid4()), subject_id=v["subject"], platform=v["platform"],
                 posted_at=posted, is_tracked=True, added_at="2026-01-01 00:00:00", version=self.version,
                 is_deleted=deleted))

    def add_video(self, subject, platform):
        video = self.new_id()
        posted = self.rng.choice([None, day(self.rng.randint(-3, DAYS)), day(self.rng.randint(-1, 4))])
        known = [c for c in VIDEO if self.rng.random() < 0.75]
        self.videos[video] = dict(subject=subject or video, platform=platform, posted=posted, counters=known)
        self.facts[(subject or video, video)] = {}
        self.put_video(video)

    def moment(self, on):
        while True:
            at = datetime(on.year, on.month, on.day, tzinfo=timezone.utc) + timedelta(
                microseconds=self.rng.choice([0, self.rng.randrange(86_400_000_000)]))
            if at not in self.times:
                self.times.add(at)
                return at.strftime("%Y-%m-%d %H:%M:%S.%f")

    def observe(self):
        on = day(self.rng.randrange(DAYS))
        at = self.moment(on)
        if self.rng.random() < 0.25 and self.profile:
            subject = self.rng.choice(list(self.profile))
            value = None if self.rng.random() < 0.2 else self.rng.randrange(1000)
            kept = self.profile[subject]
            if on not in kept or kept[on][0] < at:
                kept[on] = (at, {"follower": value})
            self.pending["account_snapshots"].append(
                dict(org_id=self.org, subject_id=subject, date=str(on), observed_at=at, follower_count=value))
        elif self.videos:
            video = self.rng.choice(list(self.videos))
            v = self.videos[video]
            subject = v["subject"]
            sparse = self.rng.choice([0.1, 0.1, 0.6])
            counters = {c: None if c not in v["counters"] or self.rng.random() < sparse else self.rng.randrange(1000)
                        for c in VIDEO}
            kept = self.facts[(subject, video)]
            if on not in kept or kept[on][0] < at:
                kept[on] = (at, counters)
            self.pending["video_snapshots"].append(
                dict(org_id=self.org, subject_id=subject, video_id=video, date=str(on), observed_at=at,
                     **{f"{c}_count": counters[c] for c in VIDEO}))
        else:
            return
        self.touched.add(subject)

    def flush(self, engine):
        for table, rows in self.pending.items():
            self.rng.shuffle(rows)
            half = self.rng.randint(0, len(rows))
            engine.insert(table, rows[:half])
            engine.insert(table, rows[half:])
            if rows and self.rng.random() < 0.3:
                engine.insert(table, rows)  # delivered twice
            self.pending[table] = []

    def recompute(self, engine):
        self.flush(engine)
        if self.touched:
            for _ in range(self.rng.choice([1, 1, 2])):
                engine.run(SQL["recompute"], subjects=tuples(*((self.org, s) for s in sorted(self.touched))), version=self.version,
                           anew=self.rng.random() < 0.2)
        self.touched = set()

    def relocate(self, engine, video, subject, into=None):
        """Another subject for a video, or another record for a post (`into`)."""
        self.flush(engine)
        old = (self.videos[video]["subject"], video)
        new = (subject, into or video)
        for _ in range(self.rng.choice([1, 2])):
            engine.run(SQL["copy_video_snapshots"], moves=tuples((self.org, *old, *new)))
        for _ in range(self.rng.choice([1, 2])):
            engine.run(SQL["remove_moved_snapshots"], places=tuples((self.org, *old)))
        moved = self.facts.pop(old)
        kept = self.facts.setdefault(new, {})
        for on, snapshot in moved.items():
            if on not in kept or kept[on][0] < snapshot[0]:
                kept[on] = snapshot
        self.touched |= {old[0], new[0]}
        if into:
            self.put_video(video, deleted=1)
            del self.videos[video]
        else:
            self.videos[video]["subject"] = subject
            self.put_video(video)

    def upheaval(self, engine):
        alone = [v for v in self.videos if self.videos[v]["subject"] not in self.accounts]
        found = [v for v in self.videos if self.videos[v]["subject"] in self.accounts]
        what = self.rng.choice(["attach", "merge", "delete account", "delete video", "repost", "recompute"])
        if what == "attach" and alone:
            video = self.rng.choice(alone)
            homes = [a for a in self.accounts if self.accounts[a] == self.videos[video]["platform"]]
            if homes:
                self.relocate(engine, video, self.rng.choice(homes))
        elif what == "merge" and alone and found:
            stub, other = self.rng.choice(alone), self.rng.choice(found)
            subject = self.videos[other]["subject"]
            if self.videos[stub]["platform"] != self.videos[other]["platform"]:
                return
            if self.rng.random() < 0.5:
                self.relocate(engine, stub, subject, into=other)
            else:
                self.relocate(engine, stub, subject)
                self.relocate(engine, other, subject, into=stub)
        elif what == "delete account" and len(self.accounts) > 1:
            subject = self.rng.choice(list(self.accounts))
            for video in [v for v in found if self.videos[v]["subject"] == subject]:
                if self.rng.random() < 0.5:  # also tracked individually: stays, under a subject never used before
                    self.relocate(engine, video, self.new_id())
                else:
                    self.put_video(video, deleted=1)
                    del self.videos[video], self.facts[(subject, video)]
            self.put_account(subject, self.accounts.pop(subject), deleted=1)
            del self.profile[subject]
            self.remove(engine, subject)
        elif what == "delete video" and len(alone) > 1:
            video = self.rng.choice(alone)
            subject = self.videos[video]["subject"]
            self.put_video(video, deleted=1)
            del self.videos[video], self.facts[(subject, video)]
            self.remove(engine, subject)
        elif what == "repost" and self.videos:  # the posting time becomes known, or is corrected
            video = self.rng.choice(list(self.videos))
            self.videos[video]["posted"] = day(self.rng.randint(-3, DAYS))
            self.put_video(video)
            self.touched.add(self.videos[video]["subject"])
        elif what == "recompute":
            self.recompute(engine)

    def remove(self, engine, subject):
        self.flush(engine)
        engine.run(SQL["remove_video_snapshots"], subjects=tuples((self.org, subject)))
        engine.run(SQL["remove_account_snapshots"], subjects=tuples((self.org, subject)))
        self.touched.add(subject)

    # The model: what the numbers mean, by definition.

    def days_of(self, subject):
        days = set(self.profile.get(subject, {}))
        for (owner, _), kept in self.facts.items():
            if owner == subject:
                days |= set(kept)
        return days

    def from_zero(self, video):
        subject, posted = self.videos[video]["subject"], self.videos[video]["posted"]
        days = self.days_of(subject)
        return bool(posted and days and posted >= min(days))

    def known(self, kept, counter, until):
        days = [on for on in sorted(kept) if on <= until and kept[on][1][counter] is not None]
        return kept[days[-1]][1][counter] if days else None

    def gain(self, kept, counter, zero, first, last):
        at_end = self.known(kept, counter, last)
        if at_end is None:
            return 0
        before = self.known(kept, counter, first - timedelta(days=1))
        if before is not None:
            return at_end - before
        day_one = min(kept)
        if zero and kept[day_one][1][counter] is not None:
            return at_end
        return at_end - next(kept[on][1][counter] for on in sorted(kept) if kept[on][1][counter] is not None)

    def series(self, subject):
        """(history, counters, starts from zero) of the subject's profile and videos."""
        if subject in self.profile:
            yield self.profile[subject], ["follower"], False
        for (owner, video), kept in self.facts.items():
            if owner == subject:
                yield kept, VIDEO, self.from_zero(video)

    def subject_gain(self, subject, counter, first, last):
        return sum(self.gain(kept, counter, zero, first, last)
                   for kept, counters, zero in self.series(subject) if counter in counters)

    def level(self, subjects, counter, until):
        levels = [self.known(kept, counter, until) for subject in subjects
                  for kept, counters, _ in self.series(subject) if counter in counters]
        levels = [value for value in levels if value is not None]
        return sum(levels) if levels else None

    def as_of(self, subjects, first, last):
        times = [at for subject in subjects for kept, _, _ in self.series(subject)
                 for on, (at, _) in kept.items() if first <= on <= last]
        return max(times, default=None)

    def subjects(self):
        return sorted(set(self.profile) | {owner for owner, _ in self.facts})

    def platform(self, subject):
        return self.accounts.get(subject) or next(
            v["platform"] for v in self.videos.values() if v["subject"] == subject)


checks = 0


def same(what, got, want):
    global checks
    checks += 1
    if got != want:
        raise AssertionError(f"{what}\n  got  {got}\n  want {want}")


def latest(rows):
    """The snapshots among rows of unmerged parts."""
    days = {}
    for row in rows:
        kept = days.setdefault((row["video_id"], row["date"]), row)
        if (kept["observed_at"], kept["is_deleted"]) < (row["observed_at"], row["is_deleted"]):
            days[row["video_id"], row["date"]] = row
    return {key: (row["observed_at"], row["counters"]) for key, row in days.items() if not row["is_deleted"]}


def check(h, engine):
    rng, org = h.rng, h.org
    subjects = h.subjects()

    rollup = {(row["subject_id"], row["date"]): row for row in map(json.loads, str(engine.db.query(
        "SELECT * FROM account_daily FINAL WHERE org_id = {org:UUID}", "JSONEachRow", params={"org": org})).splitlines())}
    same("days rolled up", sorted(rollup), sorted((s, str(d)) for s in subjects for d in h.days_of(s)))
    for (subject, on), row in rollup.items():
        on = date.fromisoformat(on)
        for c in ALL:
            want = h.subject_gain(subject, c, on, on) if h.level([subject], c, on) is not None else None
            same(f"{c}_gain of {subject} on {on}", row[f"{c}_gain"], want)
            if want is not None:
                level = sum(r[f"{c}_gain"] + r[f"{c}_base"] for (s, d), r in rollup.items()
                            if s == subject and d <= str(on) and r[f"{c}_gain"] is not None)
                same(f"{c} level of {subject} on {on}", level, h.level([subject], c, on))
        same("platform", row["platform"], h.platform(subject))
        same("observed_at", row["observed_at"], h.as_of([subject], on, on))

    first, last = sorted((day(rng.randint(-2, DAYS)), day(rng.randint(0, DAYS + 2))))
    eve = first - timedelta(days=1)
    window = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    dates = dict(start=str(first), end=str(last))

    # The snapshots from which the service computes what single videos gained (store::analytics::history).
    videos = sorted(h.facts)
    keys = "[" + ",".join(f"({s},{v})" for s, v in videos) + "]"
    if videos:
        since = rng.choice([date(1970, 1, 1), first - timedelta(days=rng.randint(1, 5))])
        for name, counters in [("video_totals", ["view", "play", "like", "comment", "share"]), ("video_deltas", ["view"])]:
            rows = engine.rows(name, org=org, videos=keys, since=str(since), end=str(last))
            same(name, latest(rows), {(v, str(on)): (at, [counts[c] for c in counters]) for (_, v), kept in h.facts.items()
                                      for on, (at, counts) in kept.items() if since <= on <= last})
        subject, video = rng.choice(videos)
        rows = engine.rows("video_daily", org=org, subject=subject, video=video, end=str(last))
        same("video_daily", latest(rows), {(video, str(on)): (at, [counts[c] for c in VIDEO])
                                           for on, (at, counts) in h.facts[(subject, video)].items() if on <= last})

    chosen = rng.sample(subjects, rng.randint(0, len(subjects)))
    rows = engine.rows("subject_daily", org=org, subjects=chosen, **dates)
    same("days of subject_daily", [row["day"] for row in rows], [str(on) for on in window])
    for row, on in zip(rows, window):
        same(f"subject_daily gains on {on} of {chosen}", row["gains"],
             [sum(h.subject_gain(s, c, on, on) for s in chosen) for c in ALL])
        same(f"subject_daily counts on {on} of {chosen}", row["counts"], [h.level(chosen, c, on) for c in ALL])
        same("as_of", row["as_of"], h.as_of(chosen, date.min, on) or NEVER)

    for scope in range(4):
        deleted = rng.sample(subjects, rng.choice([0, 0, 1]) if subjects else 0)
        platform = rng.choice(["", "", "instagram", "tiktok"])
        whole = scope % 2 == 0
        counted = [s for s in (subjects if whole else chosen) if s not in deleted and platform in ("", h.platform(s))]
        part = sorted(rng.sample(subjects, 2)) if len(subjects) > 1 and scope > 1 else [0, 2**63 - 1]
        counted = [s for s in counted if part[0] <= s <= part[1]]
        params = dict(org=org, deleted=deleted, platform=platform, first=part[0], last=part[1], **dates)
        names = dict(views="view", plays="play", likes="like", comments="comment", shares="share", followers="follower")

        rows = engine.rows("subject_totals", whole_org=whole, subjects=chosen, **params)
        same("subjects", sorted(row["subject_id"] for row in rows),
             sorted(s for s in counted if any(first <= on <= last for on in h.days_of(s))))
        for row in rows:
            for name, c in names.items():
                same(f"subject_totals {name}", row[name], h.subject_gain(row["subject_id"], c, first, last))
            same("as_of", row["as_of"], h.as_of([row["subject_id"]], first, last))

        rows = engine.rows("daily", whole_org=whole, subjects=chosen, **params)
        by_day = {row["date"]: row for row in rows}
        for on in window:
            row = by_day.pop(str(on), None)
            same("day is there", row is not None, any(on in h.days_of(s) for s in counted))
            if row:
                for name, c in list(names.items())[:5]:
                    same(f"daily {name}", row[name], sum(h.subject_gain(s, c, on, on) for s in counted))
                same("as_of", row["as_of"], h.as_of(counted, on, on))
        same("no other day", by_day, {})

        (row,) = engine.rows("levels", whole_org=whole, subjects=chosen, **params)
        same("followers", row["followers"], h.level(counted, "follower", last))
        same("previous_followers", row["previous_followers"], h.level(counted, "follower", eve))
        same("as_of", row["as_of"], h.as_of(counted, date.min, last))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--histories", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder)
        for number in range(options.histories):
            seed = options.seed * 1_000_000 + number
            engine.run("SYSTEM STOP MERGES" if number % 100 < 50 else "SYSTEM START MERGES")
            h = History(random.Random(seed))
            try:
                for _ in range(h.rng.randint(1, 6)):
                    for _ in range(h.rng.randint(0, 25)):
                        h.observe()
                    h.upheaval(engine)
                h.recompute(engine)
                check(h, engine)
            except Exception:
                print(f"history {number} (seed {seed}) failed", file=sys.stderr)
                raise
    print(f"{options.histories} histories, {checks} values checked")


if __name__ == "__main__":
    main()
