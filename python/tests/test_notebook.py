"""The notebook runs, cell by cell, and shows what it says."""

import contextlib
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

NOTEBOOK = Path(__file__).resolve().parents[1] / "notebooks" / "paths.ipynb"


class Notebook(unittest.TestCase):
    """Cells share one namespace, as in Jupyter."""

    def test_paths(self) -> None:
        shown = []
        names: dict[str, Any] = {}
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "fig10.csv").write_text("Links,Chosen ports\n7,400\n")
            with mock.patch.dict(os.environ, RESULTS=folder):
                for cell in json.loads(NOTEBOOK.read_text())["cells"]:
                    if cell["cell_type"] != "code":
                        continue
                    self.assertEqual(cell["outputs"], [], "outputs are not kept")
                    out = io.StringIO()
                    with contextlib.redirect_stdout(out):
                        exec("".join(cell["source"]), names)
                    shown.append(out.getvalue())
        ports, path, spread, results = shown
        self.assertEqual(len(ports.split()), 2)
        self.assertEqual(
            path, "64 1 controlled\n63 3 controlled\n62 0 controlled\n", "the path is taken"
        )
        for chi_square in json.loads(spread):
            self.assertLess(chi_square, 16.3)
        self.assertEqual(results, "{'Links': '7', 'Chosen ports': '400'}\n")


if __name__ == "__main__":
    unittest.main()
