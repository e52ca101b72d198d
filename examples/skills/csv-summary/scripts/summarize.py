#!/usr/bin/env python3
"""Summarize the columns of one CSV file in inputs/ and write the summary to outputs/."""

import argparse
import csv
import json
import math
import re
import statistics
import sys
from collections import Counter
from pathlib import Path

INPUTS = Path("inputs")  # relative to the skill's folder, where scripts are started
OUTPUTS = Path("outputs")

MISSING = {"", "na", "n/a", "null", "-"}
NUMBER = re.compile(r"[-+]?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?|[-+]?\.[0-9]+")

# Beyond this many different texts in one column the rarest are no longer counted.
MOST_TEXTS = 50_000


class TableError(Exception):
    """The table cannot be read."""


class Column:
    """What has been seen of one column."""

    def __init__(self, name):
        self.name = name
        self.missing = 0
        self.numbers = []
        self.texts = Counter()
        self.numeric = True

    def add(self, cell):
        cell = cell.strip()
        if cell.lower() in MISSING:
            self.missing += 1
            return
        if self.numeric:
            value = float(cell.replace(",", "")) if NUMBER.fullmatch(cell) else math.inf
            if math.isfinite(value):
                self.numbers.append(value)
            else:
                self.numeric, self.numbers = False, []
        if cell in self.texts or len(self.texts) < MOST_TEXTS:
            self.texts[cell] += 1

    def summary(self, rows, top):
        found = {"column": self.name, "values": rows - self.missing, "missing": self.missing}
        if rows == self.missing:
            found["kind"] = "empty"
        elif self.numeric:
            found["kind"] = "number"
            found["smallest"] = plain(min(self.numbers))
            found["largest"] = plain(max(self.numbers))
            found["mean"] = plain(statistics.fmean(self.numbers))
            found["median"] = plain(statistics.median(self.numbers))
        else:
            found["kind"] = "text"
            found["different"] = len(self.texts)
            ranked = sorted(self.texts.items(), key=lambda item: (-item[1], item[0]))
            found["frequent"] = [{"text": text, "count": count} for text, count in ranked[:top]]
        return found


def plain(value):
    """Return a float rounded to four digits, as an int where it is a whole number."""
    value = round(value, 4)
    return int(value) if value == int(value) else value


def delimiter(text):
    """Read a delimiter, as argparse wants it."""
    if text == "tab":
        return "\t"
    if len(text) != 1 or text in "\"\r\n":
        raise argparse.ArgumentTypeError(f"{text!r} is not one character or tab")
    return text


def count(text):
    """Read a number from 1 to 20, as argparse wants it."""
    if not re.fullmatch(r"[1-9]|1[0-9]|20", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 20")
    return int(text)


def choose(name):
    """Return the input file of that name, or the only one."""
    files = sorted(p.name for p in INPUTS.iterdir() if p.is_file()) if INPUTS.is_dir() else []
    if name is None:
        if len(files) != 1:
            raise TableError(f"there are {len(files)} files in inputs/; name one with --file")
        return INPUTS / files[0]
    if name not in files:
        raise TableError(f"there is no file {name!r} in inputs/; there: {', '.join(files) or 'none'}")
    return INPUTS / name


def read(path, separator, wanted):
    """Return the number of rows and the columns of the table."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        table = csv.reader(file, delimiter=separator)
        try:
            names = [name.strip() for name in next(table, [])]
            if not names:
                raise TableError(f"{path.name} is empty")
            if len(set(names)) != len(names):
                raise TableError("two columns have the same name")
            unknown = [name for name in wanted or [] if name not in names]
            if unknown:
                raise TableError(f"no column {unknown[0]!r}; there: {', '.join(names)}")
            columns = [Column(name) for name in names]
            rows = 0
            for row in table:
                if not row:
                    continue
                if len(row) != len(columns):
                    raise TableError(f"line {table.line_num} has {len(row)} cells, the first line {len(columns)}")
                rows += 1
                for column, cell in zip(columns, row):
                    column.add(cell)
        except csv.Error as error:
            raise TableError(f"line {table.line_num}: {error}") from error
        except UnicodeDecodeError as error:
            raise TableError(f"{path.name} is not UTF-8; save it as UTF-8 first") from error
    return rows, [column for column in columns if not wanted or column.name in wanted]


def markdown(summaries):
    """Return the summaries as a Markdown table."""
    lines = ["| column | kind | values | missing | details |", "|---|---|---:|---:|---|"]
    for found in summaries:
        if found["kind"] == "number":
            details = f"{found['smallest']} to {found['largest']}, mean {found['mean']}, median {found['median']}"
        elif found["kind"] == "text":
            frequent = ", ".join(f"{item['text']} ({item['count']})" for item in found["frequent"])
            details = f"{found['different']} different; {frequent}"
        else:
            details = ""
        cells = [found["column"], found["kind"], found["values"], found["missing"], details]
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", help="name of the file below inputs/")
    parser.add_argument("--delimiter", type=delimiter, default=",", help="one character, or tab")
    parser.add_argument("--columns", help="only these columns, parted by commas")
    parser.add_argument("--format", choices=["markdown", "json"], default="markdown")
    parser.add_argument("--top", type=count, default=3, help="how many of the most frequent texts (1 to 20)")
    given = parser.parse_args(arguments)
    wanted = [name.strip() for name in given.columns.split(",")] if given.columns else None

    try:
        path = choose(given.file)
        rows, columns = read(path, given.delimiter, wanted)
    except TableError as error:
        sys.exit(f"summarize.py: {error}")
    summaries = [column.summary(rows, given.top) for column in columns]

    OUTPUTS.mkdir(exist_ok=True)
    if given.format == "json":
        target = OUTPUTS / "summary.json"
        text = json.dumps({"file": path.name, "rows": rows, "columns": summaries}, ensure_ascii=False, indent=2) + "\n"
    else:
        target = OUTPUTS / "summary.md"
        text = f"# {path.name}\n\n{rows} rows\n\n" + markdown(summaries)
    target.write_text(text, encoding="utf-8")
    print(f"{rows} rows, {len(columns)} columns; written to {target.as_posix()}")


if __name__ == "__main__":
    main()
