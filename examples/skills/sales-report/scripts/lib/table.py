"""Write rows as a table of plain text."""


def render(header, rows):
    """Return the rows below the header, columns aligned; numbers to the right."""
    text = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [header] + text) for i in range(len(header))]

    def line(cells):
        first = cells[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        return "  ".join([first] + rest).rstrip()

    ruler = "  ".join("-" * width for width in widths)
    return "\n".join([line(header), ruler] + [line(row) for row in text])
