#!/usr/bin/env python3
"""Writes the files of this folder that are not Apache's: one table as CSV and in two ways as Parquet.

usage: PYTHONPATH=$(scripts/install_parquet.sh --folder) python3 tests/worker/data/records/files/make_files.py
The bytes depend on the version of pyarrow; what they hold does not.
"""
import decimal
import pathlib
import random

import pyarrow
import pyarrow.parquet

FOLDER = pathlib.Path(__file__).resolve().parent
ROWS = 400


def quoted(cell):
    text = "" if cell is None else str(cell)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"') else text


def main():
    chance = random.Random(5)
    rows = {name: [] for name in ("click", "user", "age", "color", "tags", "price", "active", "unread")}
    for _ in range(ROWS):
        rows["click"].append(int(chance.randrange(3) == 0))
        rows["user"].append(chance.choice([None, *range(-20, 20)]))
        rows["age"].append(chance.choice([None, chance.randrange(1, 200) / 4]))
        rows["color"].append(chance.choice([None, "red", "green", "dark, blue", 'a "quoted" one']))
        rows["tags"].append(chance.choice([None, [f"t{chance.randrange(9)}" for _ in range(chance.randrange(4))]]))
        rows["price"].append(decimal.Decimal(chance.randrange(-5000, 99999)).scaleb(-2))
        rows["active"].append(chance.choice([None, True, False]))
        rows["unread"].append(chance.random())
    with open(FOLDER / "rows.csv", "w", encoding="utf-8") as file:
        file.write("click,user,age,color,tags,price,active\n")
        for click, user, age, color, tags, price, active in zip(*(rows[name] for name in list(rows)[:7])):
            cells = [click, user, age, quoted(color), "|".join(tags or []), price, "" if active is None else int(active)]
            file.write(",".join("" if cell is None else str(cell) for cell in cells) + "\n")
    plain = pyarrow.table(rows, schema=pyarrow.schema([
        ("click", pyarrow.int64()), ("user", pyarrow.int64()), ("age", pyarrow.float64()), ("color", pyarrow.string()),
        ("tags", pyarrow.list_(pyarrow.string())), ("price", pyarrow.decimal128(9, 2)), ("active", pyarrow.bool_()),
        ("unread", pyarrow.float64())]))
    pyarrow.parquet.write_table(plain, FOLDER / "rows.parquet", row_group_size=150, compression="zstd")
    # The same values in other types, another order and other pages.
    colors = plain["color"].cast(pyarrow.dictionary(pyarrow.int8(), pyarrow.large_string()))
    other = pyarrow.table({
        "active": plain["active"].cast(pyarrow.uint8()), "tags": plain["tags"].cast(pyarrow.large_list(pyarrow.binary())),
        "price": plain["price"].cast(pyarrow.decimal256(40, 2)), "color": colors,
        "age": plain["age"].cast(pyarrow.float32()), "user": plain["user"].cast(pyarrow.string()),
        "click": plain["click"].cast(pyarrow.int8())})
    pyarrow.parquet.write_table(other, FOLDER / "rows_other_types.parquet", compression="snappy", data_page_size=500,
                                data_page_version="2.0")


if __name__ == "__main__":
    main()
