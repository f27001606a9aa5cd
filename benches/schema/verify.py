#!/usr/bin/env python3
"""Checks the schemas, the views, every .sql of src/store and the queries of docs/data.md against a model of
docs/analytics.md written as plain loops.

    make test-clickhouse VERSION=26.9     or, with any chdb-core, python benches/schema/verify.py [--histories 500] [--seed 1]

Each history is an organization of its own: two accounts and two individually tracked videos, a few dozen observations in
any order, repeated observations of a day, gaps, falling, late and missing counters, videos posted before, after and at an
unknown time, videos that move between subjects, merge or are deleted, and rollups of the model, which the service computes
itself, written in between and twice. Runs in a temporary folder with merges stopped in half of the rounds.
"""

import argparse
import itertools
import json
import pathlib
import random
import re
import sys
import tempfile
import uuid
from datetime import date, datetime, timedelta, timezone

import chdb

ROOT = pathlib.Path(__file__).resolve().parents[2]
VIDEO = ["view", "like", "comment", "share", "saved", "play", "ig_play", "fb_play", "fb_like"]
ALL = VIDEO + ["follower"]
AGES = [1, 3, 7, 14, 30]
PER_VIDEO = ["view", "play", "like", "comment", "share"]  # counters of video_daily
DAY0 = date(2026, 1, 1)
DAYS = 12
NEVER = "1970-01-01 00:00:00.000000"
FOLDERS = [ROOT / "src/store/analytics", ROOT / "src/store/clickhouse/history_writer"]
# Statements by path in their folder: "video_totals", "rollup/gains_of_organization".
SQL = {path.relative_to(folder).with_suffix("").as_posix(): path.read_text()
       for folder in FOLDERS for path in folder.rglob("*.sql")}
READS = {path.relative_to(FOLDERS[0]).with_suffix("").as_posix() for path in FOLDERS[0].rglob("*.sql")}
VIEWS = "tidemark_public"
# Queries of docs/data.md by number.
DOCUMENTED = {query.split(".")[0]: "-- " + query.split("```")[0]
              for query in (ROOT / "docs/data.md").read_text().split("```sql\n-- ")[1:]}
ALL_IDS = dict(first=0, last=2**63 - 1)


def tuples(*rows):
    """Formats rows as an array of tuples; chdb does not format tuples in parameters."""
    return "[" + ",".join("(" + ",".join(repr(value) for value in row) + ")" for row in rows) + "]"


def day(number):
    return DAY0 + timedelta(days=number)


class Engine:
    def __init__(self, folder):
        self.db = chdb.connect(folder)
        for path in sorted((ROOT / "schemas").glob("*.sql")):
            for statement in path.read_text().split(";\n")[:-1] * 2:  # idempotent
                self.db.query(statement)
        self.db.query(f"CREATE DATABASE {VIEWS}")
        for path in sorted((ROOT / "schemas/views").glob("*.sql")):
            self.db.query(path.read_text(), params=dict(public=VIEWS))
        self.unused = set(SQL)
        self.version = str(self.db.query("SELECT version()", "TSVRaw")).strip()

    def run(self, name, **params):
        self.unused.discard(name)
        self.db.query(SQL[name], params=params)

    def rows(self, name, **params):
        self.unused.discard(name)
        return self.select(SQL[name], **params)

    def select(self, sql, **params):
        text = str(self.db.query(sql, "JSONEachRow", params=params))
        return [json.loads(line) for line in text.splitlines()]

    def documented(self, **params):
        """The results of the documented queries by number."""
        self.db.query(f"USE {VIEWS}")
        try:
            return {number: self.select(sql, **params) for number, sql in DOCUMENTED.items()}
        finally:
            self.db.query("USE default")

    def insert(self, table, rows):
        rows = list(rows)
        if rows:
            self.db.query(f"INSERT INTO {table} FORMAT JSONEachRow\n" + "\n".join(json.dumps(row) for row in rows))


class History:
    """The changes of an organization, and a model of the numbers that follow from them."""

    def __init__(self, rng):
        self.rng = rng
        self.org = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        self.next_id = 1
        self.accounts = {self.new_id(): rng.choice(["instagram", "tiktok"]) for _ in range(2)}
        self.videos = {}  # video -> subject, platform, posted
        self.snapshots = {}  # (subject, video) -> {day: (observed_at, counters)}
        self.profile = {subject: {} for subject in self.accounts}
        self.version = 0
        self.pending = {"video_snapshots": [], "account_snapshots": [], "videos": [], "accounts": []}
        self.changed = set()
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
        reported = [c for c in VIDEO if self.rng.random() < 0.75]
        self.videos[video] = dict(subject=subject or video, platform=platform, posted=posted, counters=reported)
        self.snapshots[(subject or video, video)] = {}
        self.put_video(video)

    def observation_time(self, on):
        while True:
            at = datetime(on.year, on.month, on.day, tzinfo=timezone.utc) + timedelta(
                microseconds=self.rng.choice([0, self.rng.randrange(86_400_000_000)]))
            if at not in self.times:
                self.times.add(at)
                return at.strftime("%Y-%m-%d %H:%M:%S.%f")

    def observe(self):
        on = day(self.rng.randrange(DAYS))
        at = self.observation_time(on)
        if self.rng.random() < 0.25 and self.profile:
            subject = self.rng.choice(list(self.profile))
            value = None if self.rng.random() < 0.2 else self.rng.randrange(1000)
            history = self.profile[subject]
            if on not in history or history[on][0] < at:
                history[on] = (at, {"follower": value})
            self.pending["account_snapshots"].append(
                dict(org_id=self.org, subject_id=subject, date=str(on), observed_at=at, follower_count=value))
        elif self.videos:
            video = self.rng.choice(list(self.videos))
            v = self.videos[video]
            subject = v["subject"]
            sparse = self.rng.choice([0.1, 0.1, 0.6])
            counters = {c: None if c not in v["counters"] or self.rng.random() < sparse else self.rng.randrange(1000)
                        for c in VIDEO}
            history = self.snapshots[(subject, video)]
            if on not in history or history[on][0] < at:
                history[on] = (at, counters)
            self.pending["video_snapshots"].append(
                dict(org_id=self.org, subject_id=subject, video_id=video, date=str(on), observed_at=at,
                     **{f"{c}_count": counters[c] for c in VIDEO}))
        else:
            return
        self.change(subject)

    def flush(self, engine):
        for table, rows in self.pending.items():
            self.rng.shuffle(rows)
            half = self.rng.randint(0, len(rows))
            engine.insert(table, rows[:half])
            engine.insert(table, rows[half:])
            if rows and self.rng.random() < 0.3:
                engine.insert(table, rows)  # delivered twice
            self.pending[table] = []

    def write_rollups(self, engine):
        """Replaces the rollups of the subjects that changed by those of the model, as a delivery does."""
        self.flush(engine)
        for _ in range(self.rng.choice([1, 1, 2]) if self.changed else 0):
            self.version += 1
            for name in ["clear_rollup", "clear_videos", "clear_ages"]:
                engine.run(name, subjects=tuples(*((self.org, s) for s in sorted(self.changed))), version=self.version)
            for subject in sorted(self.changed):
                engine.insert("account_daily", [self.subject_day(subject, on) for on in self.days_of(subject)])
            for (subject, video), history in self.snapshots.items():
                if subject in self.changed:
                    engine.insert("video_daily", self.video_days(video, history))
                    engine.insert("video_ages", self.video_ages(video, history))
        self.changed = set()

    def subject_day(self, subject, on):
        row = dict(org_id=self.org, date=str(on), subject_id=subject, platform=self.platform(subject),
                   observed_at=self.as_of([subject], on, on), digest=0, version=self.version)
        for counter in ALL:
            level, gain = self.level([subject], counter, on), self.subject_gain(subject, counter, on, on)
            before = self.level([subject], counter, on - timedelta(days=1)) or 0
            row |= {f"{counter}_gain": None, f"{counter}_base": 0} if level is None else {
                f"{counter}_gain": gain, f"{counter}_base": level - before - gain}
        return row

    def video_row(self, video):
        v = self.videos[video]
        return dict(org_id=self.org, subject_id=v["subject"], video_id=video, platform=v["platform"], version=self.version)

    def video_days(self, video, history):
        """Only days with a gain have a row."""
        for on in history:
            gains = {f"{c}_gain": self.gain(history, c, self.from_zero(video), on, on) for c in PER_VIDEO}
            if any(gains.values()):
                yield self.video_row(video) | gains | dict(date=str(on))

    def video_ages(self, video, history):
        """Of observed days only: none are interpolated, which no statement computes."""
        posted = self.videos[video]["posted"]
        views = {age: history[posted + timedelta(days=age)][1]["view"] for age in AGES
                 if posted and posted + timedelta(days=age) in history}
        if any(count is not None for count in views.values()):
            yield self.video_row(video) | {f"views_{age}": views.get(age) for age in AGES} | dict(
                id=str(uuid.UUID(int=video)), posted_at=f"{posted} 23:30:00", interpolated=[])

    def change(self, subject):
        self.changed.add(subject)

    def relocate(self, engine, video, subject, into=None):
        """Moves a video to another subject, or into another video of the same post (`into`)."""
        self.flush(engine)
        old = (self.videos[video]["subject"], video)
        new = (subject, into or video)
        for _ in range(self.rng.choice([1, 2])):
            engine.run("copy_video_snapshots", moves=tuples((self.org, *old, *new)))
        for _ in range(self.rng.choice([1, 2])):
            engine.run("remove_moved_snapshots", videos=tuples((self.org, *old)), version=self.version)
        moved = self.snapshots.pop(old)
        history = self.snapshots.setdefault(new, {})
        for on, snapshot in moved.items():
            if on not in history or history[on][0] < snapshot[0]:
                history[on] = snapshot
        self.change(old[0])
        self.change(new[0])
        if into:
            self.put_video(video, deleted=1)
            del self.videos[video]
        else:
            self.videos[video]["subject"] = subject
            self.put_video(video)

    def restructure(self, engine):
        standalone = [v for v in self.videos if self.videos[v]["subject"] not in self.accounts]
        discovered = [v for v in self.videos if self.videos[v]["subject"] in self.accounts]
        what = self.rng.choice(["attach", "merge", "delete account", "delete video", "repost", "roll up"])
        if what == "attach" and standalone:
            video = self.rng.choice(standalone)
            homes = [a for a in self.accounts if self.accounts[a] == self.videos[video]["platform"]]
            if homes:
                self.relocate(engine, video, self.rng.choice(homes))
        elif what == "merge" and standalone and discovered:
            stub, other = self.rng.choice(standalone), self.rng.choice(discovered)
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
            for video in [v for v in discovered if self.videos[v]["subject"] == subject]:
                if self.rng.random() < 0.5:  # also tracked individually: moves to a new subject
                    self.relocate(engine, video, self.new_id())
                else:
                    self.put_video(video, deleted=1)
                    del self.videos[video], self.snapshots[(subject, video)]
            self.put_account(subject, self.accounts.pop(subject), deleted=1)
            del self.profile[subject]
            self.remove(engine, subject)
        elif what == "delete video" and len(standalone) > 1:
            video = self.rng.choice(standalone)
            subject = self.videos[video]["subject"]
            self.put_video(video, deleted=1)
            del self.videos[video], self.snapshots[(subject, video)]
            self.remove(engine, subject)
        elif what == "repost" and self.videos:  # the posting time becomes known, or is corrected
            video = self.rng.choice(list(self.videos))
            self.videos[video]["posted"] = day(self.rng.randint(-3, DAYS))
            self.put_video(video)
            self.change(self.videos[video]["subject"])
        elif what == "roll up":
            self.write_rollups(engine)

    def remove(self, engine, subject):
        self.flush(engine)
        engine.run("remove_video_snapshots", subjects=tuples((self.org, subject)), version=self.version)
        engine.run("remove_account_snapshots", subjects=tuples((self.org, subject)), version=self.version)
        self.change(subject)

    # The model: the numbers by definition.

    def days_of(self, subject):
        days = set(self.profile.get(subject, {}))
        for (owner, _), history in self.snapshots.items():
            if owner == subject:
                days |= set(history)
        return days

    def from_zero(self, video):
        subject, posted = self.videos[video]["subject"], self.videos[video]["posted"]
        days = self.days_of(subject)
        return bool(posted and days and posted >= min(days))

    def last_known(self, history, counter, until):
        days = [on for on in sorted(history) if on <= until and history[on][1][counter] is not None]
        return history[days[-1]][1][counter] if days else None

    def gain(self, history, counter, starts_at_zero, first, last):
        at_end = self.last_known(history, counter, last)
        if at_end is None:
            return 0
        before = self.last_known(history, counter, first - timedelta(days=1))
        if before is not None:
            return at_end - before
        day_one = min(history)
        if starts_at_zero and history[day_one][1][counter] is not None:
            return at_end
        return at_end - next(history[on][1][counter] for on in sorted(history) if history[on][1][counter] is not None)

    def series(self, subject):
        """(snapshots, counters, starts at zero) of the subject's profile and videos."""
        if subject in self.profile:
            yield self.profile[subject], ["follower"], False
        for (owner, video), history in self.snapshots.items():
            if owner == subject:
                yield history, VIDEO, self.from_zero(video)

    def subject_gain(self, subject, counter, first, last):
        return sum(self.gain(history, counter, starts_at_zero, first, last)
                   for history, counters, starts_at_zero in self.series(subject) if counter in counters)

    def reported_gain(self, subjects, counter, first, last):
        """The gain of the subjects observed in a window; None if none of them ever reported the counter."""
        reported = [s for s in subjects if self.level([s], counter, last) is not None
                    and any(first <= on <= last for on in self.days_of(s))]
        return sum(self.subject_gain(s, counter, first, last) for s in reported) if reported else None

    def level(self, subjects, counter, until):
        levels = [self.last_known(history, counter, until) for subject in subjects
                  for history, counters, _ in self.series(subject) if counter in counters]
        levels = [value for value in levels if value is not None]
        return sum(levels) if levels else None

    def as_of(self, subjects, first, last):
        times = [at for subject in subjects for history, _, _ in self.series(subject)
                 for on, (at, _) in history.items() if first <= on <= last]
        return max(times, default=None)

    def subjects(self):
        return sorted(set(self.profile) | {owner for owner, _ in self.snapshots})

    def platform(self, subject):
        return self.accounts.get(subject) or next(
            v["platform"] for v in self.videos.values() if v["subject"] == subject)


checks = 0


def expect_equal(what, got, want):
    global checks
    checks += 1
    if got != want:
        raise AssertionError(f"{what}\n  got  {got}\n  want {want}")


def latest(rows):
    """The current snapshots among rows of unmerged parts."""
    days = {}
    for row in rows:
        latest_row = days.setdefault((row["video_id"], row["date"]), row)
        if (latest_row["observed_at"], latest_row["is_deleted"]) < (row["observed_at"], row["is_deleted"]):
            days[row["video_id"], row["date"]] = row
    return {key: (row["observed_at"], row["counters"]) for key, row in days.items() if not row["is_deleted"]}


def summary_gain(rows, n, starts_at_zero, first):
    """The gain of the nth counter since `first`, from rows of one video as store::analytics::snapshots computes it."""
    known = [(row["date"], row["counters"][n]) for row in rows if row["counters"][n] is not None]
    if not known:
        return 0
    before = [count for on, count in known if on < str(first)]
    if before:
        return known[-1][1] - before[-1]
    return known[-1][1] - (0 if starts_at_zero and rows[0]["counters"][n] is not None else known[0][1])


def check(h, engine):
    rng, org = h.rng, h.org
    subjects = h.subjects()

    first, last = sorted((day(rng.randint(-2, DAYS)), day(rng.randint(0, DAYS + 2))))
    window = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    dates = dict(start=str(first), end=str(last))

    # The snapshots from which the service computes the gains of videos (store::analytics::snapshots).
    videos = sorted(h.snapshots)
    keys = "[" + ",".join(f"({s},{v})" for s, v in videos) + "]"
    if videos:
        since = rng.choice([date(1970, 1, 1), first - timedelta(days=rng.randint(1, 5))])
        for name, counters, column in [("video_totals", ["view", "play", "like", "comment", "share"], {}),
                                       ("video_counter", ["view"], dict(counter="view_count"))]:
            rows = engine.rows(name, org=org, videos=keys, since=str(since), end=str(last), **column)
            want = {(v, str(on)): (at, [counts[c] for c in counters]) for (_, v), history in h.snapshots.items()
                    for on, (at, counts) in history.items() if since <= on <= last}
            expect_equal(name, latest(rows), want)
            starts = [first, min(day(rng.randint(0, DAYS)), last), first]
            rows = engine.rows(f"{name}_summary", org=org, videos=keys, starts="[" + ",".join(f"'{s}'" for s in starts) + "]",
                               since="1970-01-01", end=str(last), **column)
            for (_, v), history in h.snapshots.items():
                own = [row for row in rows if row["video_id"] == v]
                expect_equal("latest observation", max((row["observed_at"] for row in own), default=None),
                     max((at for on, (at, _) in history.items() if on <= last), default=None))
                for start, zero, (n, c) in itertools.product(starts, [False, True], enumerate(counters)):
                    expect_equal(f"{c} of {v} since {start}", summary_gain(own, n, zero, start),
                         h.gain(history, c, zero, start, last))
        subject, video = rng.choice(videos)
        rows = engine.rows("video_daily", org=org, subject=subject, video=video, end=str(last))
        want = {(video, str(on)): (at, [counts[c] for c in VIDEO])
                for on, (at, counts) in h.snapshots[(subject, video)].items() if on <= last}
        expect_equal("video_daily", latest(rows), want)

    chosen = rng.sample(subjects, rng.randint(0, len(subjects)))
    rows = engine.rows("subject_daily", org=org, subjects=chosen, **dates)
    expect_equal("days of subject_daily", [row["day"] for row in rows], [str(on) for on in window])
    for row, on in zip(rows, window):
        expect_equal(f"subject_daily gains on {on} of {chosen}", row["gains"] or [0] * len(ALL),
             [sum(h.subject_gain(s, c, on, on) for s in chosen) for c in ["follower", *VIDEO]])
        expect_equal(f"subject_daily counts on {on} of {chosen}", row["counts"] or [None] * len(ALL),
             [h.level(chosen, c, on) for c in ["follower", *VIDEO]])
        expect_equal("as_of", row["as_of"], h.as_of(chosen, date.min, on) or NEVER)

    check_scopes(h, engine, chosen, first, last)
    check_documented(h, engine, first, last)
    run_others(h, engine, chosen, first, last)


def run_others(h, engine, chosen, first, last):
    """Runs the other queries, whose results the tests of the service compare with a model."""
    videos = [video for _, video in h.snapshots]
    values = dict(ALL_IDS, org=h.org, start=str(first), end=str(last), since=str(first), platform="tiktok", removed=chosen,
                  subjects=chosen, groups=[0] * len(chosen), gain="view_gain", views="views_7", age=7, limit=10,
                  least=-(2**63), most=2**63 - 1, starts=f"['{first}']", version=0, first_day="1970-01-01", current=str(first),
                  sign=1)
    pairs = "[" + ",".join(f"({subject},{video})" for subject, video in h.snapshots) + "]"
    for name in sorted(engine.unused & READS):
        parameters = set(re.findall(r"{(\w+):", SQL[name])) - {"videos"}
        own = dict(videos=pairs if "Tuple" in SQL[name] else videos) if "{videos:" in SQL[name] else {}
        engine.rows(name, **own, **{parameter: values[parameter] for parameter in parameters})


def check_scopes(h, engine, chosen, first, last):
    """Checks the queries of the rollup over some subjects, and over organizations without a platform and removed subjects."""
    rng, subjects = h.rng, h.subjects()
    numbers = [rng.randint(0, 2) for _ in chosen]
    groups = [[s for s, number in zip(chosen, numbers) if number == group] for group in range(3)]
    some = dict(org=h.org, subjects=chosen, groups=numbers)
    if chosen:
        check_rollup(h, engine, "subjects", some, groups, first, last)
        params = dict(some, start=str(first), end=str(last))
        for name, counters in [("metric", ["view"]), ("engagement", ["like", "comment", "share"])]:
            for row in engine.rows(f"rollup/{name}_of_subjects", **params, gain="view_gain"):
                on, group = date.fromisoformat(row["day"]), groups[row["group_number"]]
                expect_equal(f"{name} on {on}", row["gain"], sum(h.subject_gain(s, c, on, on) for s in group for c in counters))
    for platform in ["", rng.choice(["instagram", "tiktok"])]:
        removed, bounds = rng.sample(subjects, rng.choice([0, 1]) if subjects else 0), ALL_IDS
        if len(subjects) > 1 and rng.random() < 0.5:
            bounds = dict(zip(["first", "last"], sorted(rng.sample(subjects, 2))))
        scope = [s for s in subjects if s not in removed and platform in ("", h.platform(s))
                 and bounds["first"] <= s <= bounds["last"]]
        groups = [[s for s in scope if h.platform(s) == group] for group in ["instagram", "tiktok"]]
        params = dict(org=h.org, platform=platform, removed=removed, **bounds)
        check_rollup(h, engine, "organization", params, groups, first, last)


def check_rollup(h, engine, kind, scope, groups, first, last):
    """Checks the queries over subjects in groups."""
    def rows(name, start, **params):
        return engine.rows(f"rollup/{name}_of_{kind}", **scope, start=str(start), end=str(last), **params)

    days, steps = rows("gains", first), rows("followers", first, first_day="1970-01-01")
    for number, group in enumerate(groups):
        check_days(h, [row for row in days if row["group_number"] == number], group, first, last)
        check_levels(h, [row for row in steps if row["group_number"] == number], group, first, last)
    expect_equal("groups", {row["group_number"] for row in days + steps} <= set(range(len(groups))), True)
    before, subjects = first - (last - first) - timedelta(days=1), sum(groups, [])
    totals = rows("totals", before, current=str(first))
    for is_current, (start, end) in enumerate([(before, first - timedelta(days=1)), (first, last)]):
        check_subjects(h, [row for row in totals if row["is_current"] == is_current], subjects, start, end)


def check_subjects(h, rows, subjects, first, last):
    expect_equal("subjects", sorted(row["subject_id"] for row in rows),
                 sorted(s for s in subjects if any(first <= on <= last for on in h.days_of(s))))
    for row in rows:
        for name, got in zip(["view", "play", "like", "comment", "share", "follower"], [*row["gains"], row["followers"]]):
            want = h.reported_gain([row["subject_id"]], name, first, last)
            expect_equal(f"{name} of {row['subject_id']}", got, want)
        expect_equal("as_of", row["as_of"], h.as_of([row["subject_id"]], first, last))


def check_days(h, rows, subjects, first, last):
    by_day = {row["day"]: row for row in rows}
    for n in range((last - first).days + 1):
        on = first + timedelta(days=n)
        row = by_day.pop(str(on), None)
        expect_equal(f"has a row of {on}", row is not None, any(on in h.days_of(s) for s in subjects))
        if row:
            for name, got in zip(PER_VIDEO, row["gains"]):
                expect_equal(f"{name} on {on}", got, h.reported_gain(subjects, name, on, on))
            expect_equal("observed", row["observed"], sum(on in h.days_of(s) for s in subjects))
            expect_equal("as_of", row["as_of"], h.as_of(subjects, on, on))
    expect_equal("other days", by_day, {})


def check_levels(h, rows, subjects, first, last):
    """The level at the end of a day is the sum of the steps up to it."""
    for on in [first - timedelta(days=1), first, last]:
        steps = [row["step"] for row in rows if row["day"] <= str(on) and row["step"] is not None]
        expect_equal(f"followers on {on}", sum(steps) if steps else None, h.level(subjects, "follower", on))
    expect_equal("as_of", max((row["as_of"] for row in rows), default=None), h.as_of(subjects, date.min, last))


def check_documented(h, engine, first, last):
    """Runs the documented queries, and checks those of a day, of a post, of an account and of the followers."""
    subject, video = h.rng.choice(sorted(h.snapshots) or [(0, 0)])
    account = h.rng.choice(sorted(h.profile) or [0])
    results = engine.documented(org=h.org, start=str(first), end=str(last), video=video, account=account, collection=h.org)
    window = [first + timedelta(days=n) for n in range((last - first).days + 1)]
    for row, on in zip(results["1"], window, strict=True):
        views = sum(h.subject_gain(s, "view", on, on) for s in h.subjects())
        expect_equal(f"documented views on {on}", (row["date"], row["views"] or 0), (str(on), views))
    history = h.snapshots.get((subject, video), {})
    want = []
    for on in (on for on in window if on in history):
        count = h.last_known(history, "view", on)
        gain = None if count is None else h.gain(history, "view", h.from_zero(video), on, on)
        want.append((str(on), gain, count))
    expect_equal(f"documented days of {video}", [(r["date"], r["view_gain"], r["view_count"]) for r in results["7"]], want)
    want = [(str(on), h.level([account], "view", on)) for on in window if on in h.days_of(account)]
    expect_equal(f"documented level of {account}", [(r["date"], r["level"]) for r in results["8"]], want)
    accounts = [s for s in h.accounts if s in h.profile]
    expect_equal("documented followers", results["9"][0]["followers"], h.level(accounts, "follower", last))


def check_records(h, engine):
    """Removes the organization, and records it as a delivery."""
    before = engine.rows("last_delivery")[0]["delivery"]
    for _ in range(2):  # the second has no effect
        engine.run("record_delivery", before=before, delivery=before + 1)
    expect_equal("delivery", engine.rows("last_delivery")[0]["delivery"], before + 1)
    expect_equal("writes that still run", len(engine.rows("count_pending_writes")), 1)
    version = h.version + 1
    engine.insert("creators", [dict(org_id=h.org, id=h.org, name="x", is_active=True, added_at="2026-01-01 00:00:00",
                                    version=1)])
    keys = dict(subjects=[(h.org, s) for s in h.subjects()], accounts=[(h.org, s) for s in h.accounts],
                videos=[(h.org, v) for v in h.videos], creators=[(h.org, h.org)])
    for name, parameter in [("clear_rollup", "subjects"), ("clear_videos", "subjects"), ("clear_ages", "subjects"),
                            ("remove_accounts", "accounts"), ("remove_videos", "videos"),
                            ("remove_creators", "creators")]:
        engine.run(name, version=version, **{parameter: tuples(*keys[parameter])})
    for table in ["account_daily", "video_daily", "video_ages", "accounts", "videos", "creators"]:
        (row,) = engine.select(f"SELECT count() AS rows FROM {table} FINAL WHERE org_id = {{org:UUID}}", org=h.org)
        expect_equal(f"rows of {table}", row["rows"], 0)


def check_settings(engine):
    """The engine has every setting of deploy/clickhouse/settings.tsv that is not the embedded engine's, none obsolete."""
    for line in (ROOT / "deploy/clickhouse/settings.tsv").read_text().splitlines():
        if line.startswith("#") or line.startswith("setting\t"):
            continue
        name, table, places = line.split("\t")
        if places != "embedded":
            found = engine.select(f"SELECT * FROM system.{table} WHERE name = {{name:String}}", name=name)
            expect_equal(f"{name} is obsolete", [bool(row["is_obsolete"]) for row in found], [False])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--histories", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    # The engine may still write when the folder is deleted.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        engine = Engine(folder)
        check_settings(engine)
        for number in range(options.histories):
            seed = options.seed * 1_000_000 + number
            engine.db.query("SYSTEM STOP MERGES" if number % 20 < 10 else "SYSTEM START MERGES")
            h = History(random.Random(seed))
            try:
                for _ in range(h.rng.randint(1, 6)):
                    for _ in range(h.rng.randint(0, 25)):
                        h.observe()
                    h.restructure(engine)
                h.write_rollups(engine)
                check(h, engine)
                check_records(h, engine)
            except Exception:
                print(f"history {number} (seed {seed}) failed", file=sys.stderr)
                raise
        expect_equal("statements that did not run", engine.unused, set())
    print(f"ClickHouse {engine.version}: {options.histories} histories, {checks} values checked")


if __name__ == "__main__":
    main()
