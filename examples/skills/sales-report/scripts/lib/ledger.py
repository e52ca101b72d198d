"""Read the ledger of orders and the rates of currencies."""

import csv
import json
from collections import namedtuple
from decimal import Decimal, InvalidOperation

Order = namedtuple("Order", "date region product units amount")

COLUMNS = ["date", "region", "product", "units", "price", "currency"]


class LedgerError(Exception):
    """A line of the ledger, or a rate, that cannot be used."""


def read_rates(path):
    """Return the report's currency and how much of it each currency is worth."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    try:
        return data["base"], {name: Decimal(rate) for name, rate in data["rates"].items()}
    except (KeyError, TypeError, InvalidOperation) as error:
        raise LedgerError(f"{path}: {error!r}")


def read_orders(path, rates):
    """Return the orders with their amounts in the report's currency."""
    orders = []
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != COLUMNS:
            raise LedgerError(f"{path}: the columns are {reader.fieldnames}, want {COLUMNS}")
        for row in reader:
            try:
                units = int(row["units"])
                amount = units * Decimal(row["price"]) * rates[row["currency"]]
            except (KeyError, TypeError, ValueError, InvalidOperation):
                raise LedgerError(f"{path}, line {reader.line_num}: {row}")
            orders.append(Order(row["date"], row["region"], row["product"], units, amount))
    return orders
