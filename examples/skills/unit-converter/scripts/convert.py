#!/usr/bin/env python3
"""Multiply a quantity by a factor and print the result as one line of JSON."""

import argparse
import json
import sys
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation, localcontext


def number(text):
    """Read a finite decimal number, as argparse wants it."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    if not value.is_finite():
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number")
    if abs(value.adjusted()) > 100:
        raise argparse.ArgumentTypeError(f"{text!r} is too large or too small")
    return value


def digits(text):
    """Read a count of digits behind the point, as argparse wants it."""
    if not text.isascii() or not text.isdigit() or int(text) > 12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 12")
    return int(text)


def convert(value, factor, precision):
    """Return value times factor with so many digits behind the point."""
    with localcontext() as context:
        context.prec = 400
        result = value * factor
        return result.quantize(Decimal(1).scaleb(-precision), rounding=ROUND_HALF_EVEN)


def plain(value):
    """Return a decimal as the number that JSON writes."""
    if value == value.to_integral_value() and value.as_tuple().exponent >= 0:
        return int(value)
    return float(value)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--value", type=number, required=True, help="the quantity to convert")
    parser.add_argument("--factor", type=number, required=True, help="by what to multiply it")
    parser.add_argument("--precision", type=digits, default=4, help="digits behind the point (0 to 12, default 4)")
    given = parser.parse_args(arguments)
    if given.factor == 0:
        parser.error("argument --factor: it must not be zero")

    result = convert(given.value, given.factor, given.precision)
    json.dump({"value": plain(given.value), "factor": plain(given.factor), "result": plain(result)}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
