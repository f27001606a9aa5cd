"""Reads files of an organization with every reader of Parquet, and compares their rows with the CSV file's.

Takes a folder with NAME.csv, whose texts are not guarded, and NAME.parquet, and the rows that ClickHouse read of NAME.parquet as
NAME.jsonl."""

import csv
import datetime
import json
import sys
from pathlib import Path

import duckdb
import pandas
import pyarrow
import pyarrow.parquet

folder = Path(sys.argv[1])
PARSE = {
    "string": lambda text: text,
    "int64": int,
    "double": float,
    "bool": {"true": True, "false": False}.__getitem__,
    "date32[day]": datetime.date.fromisoformat,
    "timestamp[us, tz=UTC]": datetime.datetime.fromisoformat,
}


def with_pandas(path):
    frame = pandas.read_parquet(path, dtype_backend="pyarrow")
    return [[None if value is pandas.NA else value for value in row] for row in frame.itertuples(index=False, name=None)]


def with_duckdb(path):
    return duckdb.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchall()


def with_clickhouse(path):
    schema = pyarrow.parquet.read_schema(path)
    lines = path.with_suffix(".jsonl").read_text(encoding="utf-8").split("\n")
    rows = [json.loads(line) for line in lines if line]

    def value(field, row):
        found = row[field.name]
        is_parsed = isinstance(found, str) and field.type != pyarrow.string()
        return PARSE[str(field.type)](found) if is_parsed else found

    return [[value(field, row) for field in schema] for row in rows]


def comparable(rows):
    """A CSV file does not tell an unknown text from an empty one."""
    return [[None if value == "" else value for value in row] for row in rows]


counts = {}
for path in sorted(folder.glob("*.parquet")):
    table = pyarrow.parquet.read_table(path)
    with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    assert header == table.column_names, (path.name, header)
    parsers = [PARSE[str(field.type)] for field in table.schema]
    expected = [[parse(text) if text else None for parse, text in zip(parsers, line)] for line in lines]
    readers = {
        "pyarrow": list(zip(*(column.to_pylist() for column in table.columns))),
        "pandas": with_pandas(path),
        "DuckDB": with_duckdb(path),
        "ClickHouse": with_clickhouse(path),
    }
    for reader, rows in readers.items():
        for number, (found, row) in enumerate(zip(comparable(rows), expected, strict=True)):
            assert found == row, f"{reader}, row {number} of {path.name}:\n{found}\n{row}"
    counts[path.stem] = len(expected)
print(json.dumps(counts))
