"""The wheel: built as pip does it, and imported from where nothing else of this folder is."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

FOLDER = Path(__file__).resolve().parents[1]
BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"
USE = """
import sextant
codec = sextant.Codec("ports", radix=4, key=bytes(16))
flow = sextant.Packet.of("10.0.0.1", "10.3.0.2", protocol=6)
print(next(codec.selectors(flow, [sextant.Hop(64, 1)])).source_port is not None)
"""


class Wheel(unittest.TestCase):
    """What users install."""

    @unittest.skipUnless(find_spec("setuptools") and find_spec("wheel"), "no setuptools or wheel")
    def test_wheel(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "source"
            shutil.copytree(FOLDER, source, ignore=shutil.ignore_patterns("__pycache__", "tests"))
            built = subprocess.run(
                [sys.executable, "-c", BUILD, folder], cwd=source, check=True, capture_output=True
            )
            wheel = Path(folder) / built.stdout.decode().split()[-1]
            with ZipFile(wheel) as files:
                self.assertIn("sextant/py.typed", files.namelist())
                files.extractall(Path(folder) / "installed")
            used = subprocess.run(
                [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, 'installed'){USE}"],
                cwd=folder,
                check=True,
                capture_output=True,
            )
            self.assertEqual(used.stdout.decode(), "True\n")


if __name__ == "__main__":
    unittest.main()
