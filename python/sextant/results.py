"""Results of experiments: the folders that "sextant experiment run" writes, as data frames."""

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import pandas


def tables(folder: str | Path) -> dict[str, list[dict[str, str]]]:
    """Return the tables of an experiment by name: a row is a dict by column."""
    found = {}
    for file in sorted(Path(folder).glob("*.csv")):
        with file.open(newline="") as text:
            found[file.stem] = list(csv.DictReader(text))
    return found


def result(folder: str | Path) -> dict[str, Any]:
    """Return the experiment's result.json: what it is, and the source's numbers beside ours."""
    return cast(dict[str, Any], json.loads((Path(folder) / "result.json").read_text()))


def frame(folder: str | Path, table: str) -> "pandas.DataFrame":
    """Return a table as a pandas data frame, with numbers where all of a column are."""
    import pandas

    return pandas.read_csv(Path(folder) / f"{table}.csv")
