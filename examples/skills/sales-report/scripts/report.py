#!/usr/bin/env python3
"""Sum up the sales ledger by region, product or month."""

import argparse
import json
import re
import sys
from decimal import Decimal
from pathlib import Path

from lib.ledger import LedgerError, read_orders, read_rates
from lib.table import render

ASSETS = Path("assets")  # relative to the skill's folder, where scripts are started

KEYS = {
    "region": lambda order: order.region,
    "product": lambda order: order.product,
    "month": lambda order: order.date[:7],
}


def month(text):
    """Read a month, as argparse wants it."""
    if not re.fullmatch(r"[0-9]{4}-(0[1-9]|1[0-2])", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a month such as 2024-01")
    return text


def count(text):
    """Read a whole number from 1, as argparse wants it."""
    if not re.fullmatch(r"[1-9][0-9]{0,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 9999")
    return int(text)


def summarize(orders, key):
    """Return [name, orders, units, amount] for each group, the largest amount first."""
    groups = {}
    for order in orders:
        group = groups.setdefault(key(order), [0, 0, Decimal(0)])
        group[0] += 1
        group[1] += order.units
        group[2] += order.amount
    rows = [[name] + group for name, group in groups.items()]
    return sorted(rows, key=lambda row: (-row[3], row[0]))


def money(amount):
    return str(amount.quantize(Decimal("0.01")))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--by", choices=sorted(KEYS), default="region")
    parser.add_argument("--from", dest="first", type=month, help="first month, such as 2024-01")
    parser.add_argument("--to", dest="last", type=month, help="last month, such as 2024-06")
    parser.add_argument("--top", type=count, help="only the largest so many groups")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    given = parser.parse_args(arguments)

    try:
        currency, rates = read_rates(ASSETS / "rates.json")
        orders = read_orders(ASSETS / "sales.csv", rates)
    except (OSError, LedgerError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 1

    orders = [
        order
        for order in orders
        if (given.first is None or order.date[:7] >= given.first)
        and (given.last is None or order.date[:7] <= given.last)
    ]
    rows = summarize(orders, KEYS[given.by])
    total = ["total", len(orders), sum(order.units for order in orders), sum((order.amount for order in orders), Decimal(0))]
    if given.top is not None:
        rows = rows[: given.top]

    if given.format == "json":
        names = [given.by, "orders", "units", "amount"]
        report = {
            "currency": currency,
            "groups": [dict(zip(names, row[:3] + [money(row[3])])) for row in rows],
            "total": {"orders": total[1], "units": total[2], "amount": money(total[3])},
        }
        print(json.dumps(report, ensure_ascii=False))
    else:
        header = [given.by, "orders", "units", currency]
        print(render(header, [row[:3] + [money(row[3])] for row in rows + [total]]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
