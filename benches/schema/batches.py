#!/usr/bin/env python3
"""Times reads of 100 videos over 70 days from other layouts of their snapshots, on the data of measure.py.

    pip install "chdb-core==26.7.*"
    python benches/schema/measure.py DIR generate
    python benches/schema/batches.py DIR generate    about a minute; DIR needs 3 GB more
    python benches/schema/batches.py DIR read

`packed` has all that is read of a snapshot in one column; `narrow` has no Nullable columns, -1 being unknown; `months…` have a
row per video and month with an array per counter, in granules of so many rows; `monthpack` has one string instead.
"""

import argparse

from measure import END, NAMES, SINCE, Bench, org
from verify import SQL

COUNTERS = ["view_count", "play_count", "like_count", "comment_count", "share_count"]
KEY = "org_id UUID CODEC(LZ4), subject_id UInt64 CODEC(LZ4), video_id UInt64 CODEC(LZ4), "
DATE = "date Date CODEC(Delta, LZ4), "
TIME = "observed_at DateTime64(6, 'UTC') CODEC(LZ4), is_deleted UInt8 CODEC(LZ4), "
KNOWN = [f"ifNull({name}, -1)" for name in COUNTERS]


def create(bench, table, columns, order, granule, select):
    bench.query(f"""CREATE TABLE {table} ({KEY}{columns}) ENGINE = MergeTree ORDER BY (org_id, subject_id, video_id, {order})
        SETTINGS index_granularity = {granule}, min_compress_block_size = 4096, max_compress_block_size = 16384,
            primary_key_ratio_of_unique_prefix_values_to_skip_suffix_columns = 1""")
    bench.query(f"INSERT INTO {table} SELECT org_id, subject_id, video_id, {select}")
    bench.query(f"OPTIMIZE TABLE {table} FINAL")


def generate(bench):
    bytes_of = [f"reinterpretAsFixedString({value})" for value in
                [*KNOWN, "toUnixTimestamp64Micro(observed_at)", "toUInt64(is_deleted)"]]
    create(bench, "packed", DATE + "payload FixedString(56) CODEC(LZ4)", "date", 512,
           f"date, toFixedString(concat({', '.join(bytes_of)}), 56) FROM video_snapshots")
    create(bench, "narrow", DATE + TIME + ", ".join(f"{name} Int64 CODEC(T64, LZ4)" for name in COUNTERS), "date", 512,
           f"date, observed_at, is_deleted, {', '.join(KNOWN)} FROM video_snapshots")
    arrays = "month Date CODEC(LZ4), dates Array(Date) CODEC(LZ4), observed Array(DateTime64(6, 'UTC')) CODEC(LZ4), " \
        "deleted Array(UInt8) CODEC(LZ4), " + ", ".join(f"{name} Array(Int64) CODEC(T64, LZ4)" for name in COUNTERS)
    groups = ", ".join(f"groupArray({value})" for value in ["date", "observed_at", "is_deleted", *KNOWN])
    for granule in (4, 16):
        create(bench, f"months{granule}", arrays, "month", granule,
               f"toStartOfMonth(date) AS month, {groups} FROM video_snapshots GROUP BY org_id, subject_id, video_id, month")
    steps = "arrayMap((x, i) -> if(i = 1, x, x - {0}[i - 1]), {0}, arrayEnumerate({0}))"
    five_bytes = "char(" + ", ".join(f"bitAnd(bitShiftRight(x, {shift}), 255)" for shift in (0, 8, 16, 24, 32)) + ")"
    strings = [f"arrayStringConcat(arrayMap(x -> {five_bytes}, {steps.format(name)}))" for name in COUNTERS]
    create(bench, "monthpack", "month Date CODEC(LZ4), payload String CODEC(LZ4)", "month", 16,
           f"month, concat({', '.join(strings)}) FROM months16")


def read(bench):
    print(bench.query("""SELECT table, sum(rows), round(sum(bytes_on_disk) / (SELECT count() FROM video_snapshots), 2)
        FROM system.parts WHERE active GROUP BY table ORDER BY table"""))
    tail = " SETTINGS max_threads = 1, merge_tree_coarse_index_granularity = 2, " \
        "local_filesystem_read_method = 'mmap', min_bytes_to_use_mmap_io = 1"
    where = "WHERE org_id = {org:UUID} AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))} AND "
    days = where + "date BETWEEN {since:Date} AND {end:Date}" + tail
    months = where + "month BETWEEN toStartOfMonth({since:Date}) AND {end:Date}" + tail
    counters = ", ".join(COUNTERS)
    hinted = "indexHint(org_id = {org:UUID} AND (subject_id, video_id) IN {videos:Array(Tuple(UInt64, UInt64))}) " \
        "AND video_id IN {ids:Array(UInt64)} AND date BETWEEN {since:Date} AND {end:Date}" + tail
    statements = {
        "nothing (SELECT 1)": "SELECT 1",
        "keys alone": "SELECT count() FROM video_snapshots " + days,
        "as now": SQL["video_totals"],
        "as now, two threads": SQL["video_totals"].replace("max_threads = 1", "max_threads = 2"),
        "organization and subject not read": f"SELECT video_id, date, observed_at, is_deleted, [{counters}] "
                                             f"FROM video_snapshots WHERE {hinted}",
        "narrow": f"SELECT video_id, date, observed_at, is_deleted, [{counters}] FROM narrow " + days,
        "packed": "SELECT video_id, date, payload FROM packed " + days,
        "months4": f"SELECT video_id, dates, observed, deleted, {counters} FROM months4 " + months,
        "months16": f"SELECT video_id, dates, observed, deleted, {counters} FROM months16 " + months,
        "monthpack": "SELECT video_id, month, payload FROM monthpack " + months,
    }

    def run(organization, sql):
        ids = bench.ids(organization, 100)
        params = dict(org=org(organization), since=SINCE, end=END, ids=f"[{','.join(str(video) for _, video in ids)}]",
                      videos=f"[{','.join(f'({subject},{video})' for subject, video in ids)}]")
        bench.db.query(sql, "RowBinary", params=params).bytes()

    for organization in (1, 4, 3):
        print(NAMES[organization])
        bench.alternate({f"  {name}": (lambda _, sql=sql: run(organization, sql)) for name, sql in statements.items()}, 25)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder")
    options.add_argument("what", choices=["generate", "read"])
    options = options.parse_args()
    bench = Bench(options.folder)
    generate(bench) if options.what == "generate" else read(bench)


if __name__ == "__main__":
    main()
