#!/usr/bin/env python3
"""Generates about 26 million snapshots inside the engine and times the statements of src/store on them. The rollups, which the
service computes, are empty.

    pip install "chdb-core==26.7.*"
    python benches/schema/measure.py DIR generate [--tenth]    about two minutes; DIR needs 1.5 GB
    python benches/schema/measure.py DIR read                  reads of four organizations in turn
    python benches/schema/measure.py DIR write                 move, removal (changes the data)

The first organization has 70 accounts with 100 videos each over 90 days; the next three are ten times that in days, in
accounts and in videos; 45 more are filler. Nine counters move independently, 1 % of their values are unknown, 3 % of the
days are missing. Times are CPU and wall milliseconds inside the engine, without HTTP; statements alternate, so that
other load on the machine affects all equally. Ids are random in each round.
"""

import argparse
import json
import pathlib
import random
import time

import chdb

from verify import SQL, tuples

ROOT = pathlib.Path(__file__).resolve().parents[2]
END, SINCE = "2026-06-30", "2026-04-22"
RATES = dict(view=4000, like=300, comment=20, share=40, saved=60, play=5000, ig_play=3000, fb_play=600, fb_like=30)
COUNTERS = [f"{name}_count" for name in RATES]
SHAPES = {1: (70, 100, 90), 2: (70, 100, 900), 3: (700, 100, 90), 4: (70, 1000, 90)} | {n: (24, 80, 90) for n in range(5, 50)}
NAMES = {1: "base", 2: "days x10", 3: "accounts x10", 4: "videos x10"}


def org(number):
    return f"018f0000-0000-7000-8000-{number:012x}"


class Bench:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.db = chdb.connect(str(self.folder / "db"))
        self.rng = random.Random(5)
        file = self.folder / "layout.json"
        self.layout = {int(n): shape for n, shape in json.loads(file.read_text()).items()} if file.exists() else {}

    def query(self, sql, **params):
        return str(self.db.query(sql, "TSV", params=params))

    def generate(self, tenth):
        for path in sorted((ROOT / "schemas").glob("*.sql")):
            for statement in path.read_text().split(";\n")[:-1]:
                self.query(statement)
        subject, video = 1, 1_000_000
        for number, (accounts, per, days) in SHAPES.items():
            accounts = max(2, accounts // 10) if tenth else accounts
            self.fill(number, subject, accounts, video, per, days)
            self.layout[number] = (subject, accounts, video, per, days)
            subject, video = subject + accounts, video + accounts * per
        for table in ["video_snapshots", "account_snapshots", "videos", "accounts"]:
            self.query(f"OPTIMIZE TABLE {table} FINAL")
        (self.folder / "layout.json").write_text(json.dumps(self.layout))
        print(self.query("SELECT table, sum(rows), sum(bytes_on_disk), round(sum(bytes_on_disk) / sum(rows), 2), count() "
                         "FROM system.parts WHERE active GROUP BY table ORDER BY table"))

    def fill(self, number, subject, accounts, video, per, days):
        total, step = accounts * per, max(1, 2_000_000 // days)
        noon = f"toDateTime64('{END} 12:00:00', 6, 'UTC')"
        moment = "(cityHash64(s) % 80000) * 1000000 + cityHash64(s, {k}) % 5400000000"  # one scrape per account and day
        rates = ", ".join(f"toUInt64({rate} * exp(3 * (cityHash64(v, {i}, 'r') % 1000 / 1000. - 0.7))) + 1 AS rate{i}"
                          for i, rate in enumerate(RATES.values()))
        curves = ", ".join(f"arrayCumSum(arrayMap(k -> toInt64(intDiv(rate{i} * (cityHash64(v, k, {i}) % 2000), "
                           f"1000 + 20 * k)), range({days}))) AS curve{i}" for i in range(9))
        joined = ", ".join(f"curve{i} AS x{i}" for i in range(9))
        values = ", ".join(f"if(cityHash64(v, k, {i}, 'n') % 100 = 0, NULL, x{i})" for i in range(9))
        for low in range(0, total, step):
            self.query(f"""INSERT INTO video_snapshots (org_id, subject_id, video_id, date, observed_at, {', '.join(COUNTERS)})
                SELECT '{org(number)}', s, v, toDate('{END}') - {days - 1} + k AS d,
                    toDateTime64(d, 6, 'UTC') + toIntervalMicrosecond({moment.format(k='k')}), {values}
                FROM (SELECT {subject} + intDiv(number, {per}) AS s, {video} + number AS v, {rates}, {curves},
                        range({days}) AS ks FROM numbers({low}, {min(step, total - low)}))
                ARRAY JOIN ks AS k, {joined} WHERE cityHash64(v, k) % 100 >= 3""")
        self.query(f"""INSERT INTO videos (org_id, video_id, id, subject_id, account_id, platform, external_id, posted_at,
                description, is_tracked, added_at, version)
            SELECT '{org(number)}', {video} + number, generateUUIDv7(number), {subject} + intDiv(number, {per}),
                generateUUIDv7(number), if(intDiv(number, {per}) % 2 = 0, 'instagram', 'tiktok'),
                toString(cityHash64(number)), {noon} - toIntervalDay(cityHash64(number) % ({days} + 60)),
                concat('caption ', randomPrintableASCII(40)), 0, now64(6), 1 FROM numbers({total})""")
        self.query(f"""INSERT INTO accounts (org_id, subject_id, id, platform, username, is_active, added_at, version)
            SELECT '{org(number)}', {subject} + number, generateUUIDv7(number), if(number % 2 = 0, 'instagram', 'tiktok'),
                concat('user', toString(number)), 1, now64(6), 1 FROM numbers({accounts})""")
        self.query(f"""INSERT INTO account_snapshots (org_id, subject_id, date, observed_at, follower_count)
            SELECT '{org(number)}', {subject} + intDiv(number, {days}) AS s, toDate('{END}') - number % {days} AS d,
                toDateTime64(d, 6, 'UTC') + toIntervalMicrosecond({moment.format(k=f'number % {days}')}),
                10000 + cityHash64(s) % 1000000 - (number % {days}) * (cityHash64(s, 1) % 100)
            FROM numbers({accounts * days})""")

    def ids(self, number, count):
        subject, accounts, video, per, _ = self.layout[number]
        return [(subject + i // per, video + i) for i in self.rng.sample(range(accounts * per), count)]

    def alternate(self, jobs, rounds):
        times = {}
        for number in range(rounds):
            for name, job in jobs.items():
                wall, cpu = time.perf_counter(), time.process_time()
                job(number)
                times.setdefault(name, []).append((time.process_time() - cpu, time.perf_counter() - wall))
        for name, pairs in times.items():
            cpu, wall = (sorted(1000 * pair[i] for pair in pairs[2 if rounds > 4 else 0:]) for i in (0, 1))
            print(f"{name:<34} cpu {cpu[len(cpu) // 2]:7.1f}   wall {wall[len(wall) // 2]:7.1f}   min {wall[0]:7.1f}", flush=True)

    def read(self):
        def video_totals(o, i, since=SINCE):
            pairs = ",".join(f"({s},{v})" for s, v in self.ids(o, 100))
            self.query(SQL["video_totals"], org=org(o), videos=f"[{pairs}]", since=since, end=END)

        def video_daily(o, i):
            ((subject, video),) = self.ids(o, 1)
            self.query(SQL["video_daily"], org=org(o), subject=subject, video=video, end=END)

        jobs = {
            "video_totals, 100": video_totals,
            "video_totals, 100, all history": lambda o, i: video_totals(o, i, "1970-01-01"),
            "video_daily": video_daily,
        }
        for name, job in jobs.items():
            print(name)
            self.alternate({"  " + NAMES[o]: (lambda i, o=o: job(o, i)) for o in NAMES}, 13)

    def write(self):
        subject, _, video, per, _ = self.layout[1]
        self.alternate({
            "move a video": lambda i: (
                self.query(SQL["copy_video_snapshots"], moves=tuples((org(1), subject, video + i, 10**9 + i, video + i))),
                self.query(SQL["remove_moved_snapshots"], version=2, videos=tuples((org(1), subject, video + i)))),
            "remove a subject": lambda i: self.query(
                SQL["remove_video_snapshots"], version=2, subjects=tuples((org(1), subject + 1 + i)))}, 4)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder")
    options.add_argument("what", choices=["generate", "read", "write"])
    options.add_argument("--tenth", action="store_true", help="a tenth of the accounts, for trying it out")
    options = options.parse_args()
    bench = Bench(options.folder)
    bench.generate(options.tenth) if options.what == "generate" else getattr(bench, options.what)()


if __name__ == "__main__":
    main()
