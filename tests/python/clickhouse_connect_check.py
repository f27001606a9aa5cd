"""Tests the embedded ClickHouse with clickhouse-connect, ClickHouse's Python client.

Arguments: URL, user, password, read-only user, its password. Prints "ok" at the end.
"""

import sys
import threading
from urllib.parse import urlsplit

import clickhouse_connect
from clickhouse_connect.driver.exceptions import DatabaseError

url, user, password, readonly_user, readonly_password = sys.argv[1:]
server = urlsplit(url)


def connect(username, secret, **options):
    return clickhouse_connect.get_client(host=server.hostname, port=server.port, username=username, password=secret, **options)


def assert_fails(action, part):
    try:
        action()
    except DatabaseError as error:
        assert part in str(error), error
        return
    raise AssertionError(f"no error: {part}")


client = connect(user, password)
assert client.ping()
assert client.server_version.startswith("26."), client.server_version

# rows of several sizes, with text that looks like the end of a statement
client.command("CREATE TABLE connect_rows (id UInt64, text String, score Nullable(Float64), tags Array(String)) ENGINE = MergeTree ORDER BY id")
rows = [[n, "\n\nDROP TABLE connect_rows;" + "x" * (n % 7), None if n % 3 else n / 2, ["a'b", str(n)]] for n in range(200_000)]
for compress in ("lz4", "zstd", "gzip", False):
    writer = connect(user, password, compress=compress)
    writer.command("TRUNCATE TABLE connect_rows")
    writer.insert("connect_rows", rows, column_names=["id", "text", "score", "tags"])
    assert writer.query("SELECT count(), sum(id) FROM connect_rows").result_rows == [(200_000, 199_999 * 100_000)]
first = client.query("SELECT * FROM connect_rows ORDER BY id LIMIT 5").result_rows
assert [list(row) for row in first] == rows[:5], first

# a result larger than the buffer of the server
with client.query_row_block_stream("SELECT id, text FROM connect_rows ORDER BY id") as stream:
    assert sum(len(block) for block in stream) == 200_000
assert client.query("SELECT id FROM connect_rows WHERE 0").result_rows == []
assert client.query("SELECT id FROM connect_rows LIMIT 0").column_names == ("id",)

# parameters and settings
row = client.query("SELECT {a:String} AS a, {b:Array(UInt8)} AS b", parameters={"a": "it's\ta \\", "b": [1, 2]}).first_row
assert row == ("it's\ta \\", [1, 2]), row
value = client.query("SELECT getSetting('max_threads')", settings={"max_threads": 3}).first_row[0]
assert value == 3, value
assert client.query("SELECT getSetting('max_threads')").first_row[0] != 3

# an error in the middle of a result, then another query in the same session
assert_fails(lambda: client.query("SELECT number, throwIf(number = 3000000) FROM numbers(5000000) SETTINGS max_threads = 1"), "throwIf")
assert client.query("SELECT 42").result_rows == [(42,)]
assert_fails(lambda: client.query("SELECT * FROM no_such_table"), "UNKNOWN_TABLE")

# temporary tables belong to a session
client.command("CREATE TEMPORARY TABLE scratch (a UInt8)")
client.insert("scratch", [[1], [2]], column_names=["a"])
assert client.query("SELECT sum(a) FROM scratch").first_row == (3,)
assert_fails(lambda: connect(user, password).query("SELECT * FROM scratch"), "UNKNOWN_TABLE")

# concurrent clients
results = {}


def query(n):
    results[n] = connect(user, password).query("SELECT {n:UInt32} + sleep(0.05)", parameters={"n": n}).first_row[0]


threads = [threading.Thread(target=query, args=(n,)) for n in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert results == {n: n for n in range(16)}, results

# the read-only user
analyst = connect(readonly_user, readonly_password)
assert analyst.query("SELECT count() FROM connect_rows").first_row == (200_000,)
assert analyst.query("SELECT {n:UInt8}", parameters={"n": 7}).first_row == (7,)
assert_fails(lambda: analyst.insert("connect_rows", rows[:1], column_names=["id", "text", "score", "tags"]), "READONLY")
assert_fails(lambda: analyst.command("DROP TABLE connect_rows"), "READONLY")
assert_fails(lambda: analyst.query("SELECT file('/etc/hostname')"), "READONLY")
assert_fails(lambda: connect(readonly_user, password), "AUTHENTICATION_FAILED")
print("ok")
