"""The numbers that the paper prints, read from its LaTeX source, to check the declared ones against."""

from __future__ import annotations

import re

#: Columns of printed means, in the order of each kind of table.
COLUMNS = {
    "tab:acc1": ("original", "acs", "mospl", "gaga"),
    "tab:acc2": ("original", "acs", "mospl", "gaga"),
    "tab:acc3": ("original", "acs", "mospl", "gaga"),
    "tab:acc4": ("original", "acs", "mospl", "gaga"),
    "tab:compar1": ("huber-lasso", "rls-svm", "re-ls-svm", "gaga"),
    "tab:cmpare2": ("robust-svm", "gaga"),
}
SENSITIVITY = ("acs", "mospl", "gaga")

#: Numbers before the means, in tables whose rows are plain cells.
PARAMETERS = {"tab:compar1": 6, "tab:cmpare2": 2}


def tabular(source: str, label: str) -> list[str]:
    """The rows of the table that has this label."""
    at = source.index(f"\\label{{{label}}}")
    begin, end = source.rindex("\\begin{table}", 0, at), source.index("\\end{table}", at)
    body = source[begin:end]
    body = body[body.index("\\begin{tabular}") : body.index("\\end{tabular}")]
    body = re.sub(r"(?<!\\)%[^\n]*", "", body)
    return [row for row in body.split("\\\\") if "&" in row and "multicolumn" not in row and "\\it" not in row]


def numbers(text: str) -> list[float]:
    """The numbers of a row, without its colours."""
    text = re.sub(r"\\rowcolor\[rgb\]\{[^}]*\}", "", text)
    return [float(found) for found in re.findall(r"(?<![\w.-])\d+\.?\d*(?![\w.])", text)]


def rows(source: str, label: str) -> list[dict[str, list[float]]]:
    """For each row of a table the mean and standard deviation by method, and ``restarts`` where they are printed."""
    columns, found = COLUMNS.get(label, SENSITIVITY), []
    for row in tabular(source, label):
        pairs = re.findall(r"(?:\\textbf\{)?(\d\.\d+)\}?\s*\\stderr\{(\d\.\d+)\}", row)
        if pairs:
            entry = {name: [float(mean), float(sd)] for name, (mean, sd) in zip(columns, pairs, strict=True)}
            entry["restarts"] = [float(row.rsplit("&", 1)[1].split("\\")[0])]
        else:
            skip = PARAMETERS.get(label, 1)
            values = numbers(row)[skip:]
            entry = {name: values[2 * k : 2 * k + 2] for k, name in enumerate(columns)}
        found.append(entry)
    return found


def parameters(source: str, label: str) -> list[tuple[list[float], float]]:
    """For each row of a table of plain cells its parameters and its noise level."""
    skip, width = PARAMETERS.get(label, 1), 2 * len(COLUMNS.get(label, SENSITIVITY))
    found = [numbers(row) for row in tabular(source, label)]
    return [(values[:skip], values[skip + width]) for values in found]
