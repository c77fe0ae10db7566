#!/usr/bin/env python3
"""Writes a synthetic Criteo log as Parquet, TFRecord, JSON lines and CSV, for hdps-bench reader --data=FILE.parquet.

usage: PYTHONPATH=$(scripts/install_parquet.sh --folder) benchmarks/record_logs.py FILE.parquet
           [--rows=400000] [--keys=texts|integers] [--codec=snappy] [--row_group=1000000] [--only_parquet]
The other files come beside it; --only_parquet leaves out TFRecord and JSON lines, which take half a minute for 100,000 rows.
A Parquet file has one row group for each --row_group rows.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import pyarrow
import pyarrow.csv
import pyarrow.parquet

import tfrecords

BIN = pathlib.Path(os.environ.get("HDPS_BIN", pathlib.Path(__file__).resolve().parent.parent / "build" / "bin"))
NAMES = [f"c{column}" for column in range(40)]  # A label, 13 integers, 26 categories.
NUMBERS = 14


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=400000)
    parser.add_argument("--keys", choices=("texts", "integers"), default="texts")
    parser.add_argument("--codec", default="snappy")
    parser.add_argument("--row_group", type=int, default=1000000)
    parser.add_argument("--only_parquet", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=wanted.file.parent) as folder:
        subprocess.run([BIN / "hdps", "generate", f"--out={folder}", f"--rows={wanted.rows}",
                        "--eval_rows=0", "--vocabulary=100000"], check=True, stdout=subprocess.DEVNULL)
        types = {name: pyarrow.int64() if column < NUMBERS else pyarrow.string() for column, name in enumerate(NAMES)}
        table = pyarrow.csv.read_csv(
            f"{folder}/train.tsv", pyarrow.csv.ReadOptions(column_names=NAMES), pyarrow.csv.ParseOptions(delimiter="\t"),
            pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=True))
    if wanted.keys == "integers":  # Of up to 32 bits, as the hexadecimal texts are.
        for column, name in list(enumerate(NAMES))[NUMBERS:]:
            numbers = [None if text is None else int(text, 16) for text in table[name].to_pylist()]
            table = table.set_column(column, name, pyarrow.array(numbers, pyarrow.int64()))
    pyarrow.parquet.write_table(table, wanted.file, row_group_size=wanted.row_group, compression=wanted.codec)
    if not wanted.only_parquet:
        with open(wanted.file.with_suffix(".tfrecord"), "wb") as records, open(wanted.file.with_suffix(".jsonl"), "w") as lines:
            for batch in table.to_batches(max_chunksize=10000):
                rows = batch.to_pylist()
                records.write(tfrecords.records(rows))
                lines.writelines(json.dumps(row) + "\n" for row in rows)
    pyarrow.csv.write_csv(table, wanted.file.with_suffix(".csv"),
                          pyarrow.csv.WriteOptions(delimiter="\t", quoting_style="none"))


if __name__ == "__main__":
    main()
