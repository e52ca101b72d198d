#!/usr/bin/env python3
"""Price an order that stands as JSON on standard input, and print the quote as JSON."""

import json
import sys
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

CENT = Decimal("0.01")
FREE_FROM = Decimal("200.00")  # subtotal from which standard shipping costs nothing

RATES = {  # country: tax, standard shipping, express shipping; see references/rates.md
    "DE": ("0.19", "4.90", "14.90"),
    "AT": ("0.20", "6.90", "16.90"),
    "FR": ("0.20", "6.90", "16.90"),
    "CH": ("0.081", "9.90", "24.90"),
    "US": ("0", "19.90", "39.90"),
}


class OrderError(Exception):
    """The order cannot be priced."""


def cents(amount):
    """Round to whole cents, half a cent to the even one."""
    return amount.quantize(CENT, rounding=ROUND_HALF_EVEN)


def number(text, what):
    """Read a decimal number that is not negative."""
    try:
        value = Decimal(text)
    except (InvalidOperation, TypeError, ValueError):
        raise OrderError(f"{what} is not a number: {text!r}") from None
    if not value.is_finite() or value < 0:
        raise OrderError(f"{what} must be zero or more: {text!r}")
    return value


def reduced(amount, discount, what):
    """Return by how much a discount makes the amount smaller."""
    if discount is None:
        return Decimal(0)
    value = number(discount["value"], f"the discount of {what}")
    if discount["kind"] == "percent":
        value = cents(amount * value / 100)
    return min(value, amount)


def quote(order):
    """Return the quote for an order."""
    country = order["customer"]["country"]
    if country not in RATES:
        raise OrderError(f"no rates for the country {country!r}")
    tax_rate, standard, express = (Decimal(rate) for rate in RATES[country])

    lines = []
    for line in order["lines"]:
        amount = cents(number(line["price"], f"the price of {line['item']!r}") * line["quantity"])
        lines.append({"item": line["item"], "amount": amount - reduced(amount, line.get("discount"), repr(line["item"]))})
    subtotal = sum(line["amount"] for line in lines)
    discount = reduced(subtotal, order.get("discount"), "the order")

    goods = subtotal - discount
    shipping = {"none": Decimal(0), "express": express}.get(order.get("shipping", "standard"), standard)
    if shipping == standard and goods >= FREE_FROM:
        shipping = Decimal(0)
    tax = cents((goods + shipping) * tax_rate)
    return {
        "currency": order["currency"],
        "lines": lines,
        "subtotal": subtotal,
        "discount": discount,
        "shipping": shipping,
        "taxRate": str(tax_rate),
        "tax": tax,
        "total": goods + shipping + tax,
    }


def text(value):
    """Write amounts as texts with two digits behind the point."""
    if isinstance(value, Decimal):
        return str(cents(value))
    raise TypeError(type(value).__name__)


def main():
    try:
        order = json.load(sys.stdin)
        answer = quote(order)
    except (OrderError, json.JSONDecodeError) as error:
        sys.exit(f"quote.py: {error}")
    except (KeyError, TypeError, AttributeError) as error:
        sys.exit(f"quote.py: the order is not of the form that SKILL.md shows: {error!r}")
    json.dump(answer, sys.stdout, default=text, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
