"""The app over recorded runs of another folder: the folder is named by SPECVIZ_TEST_TRACES."""

import os
import runpy
from pathlib import Path

from specviz.cli.browser import APP
from specviz.ui import recordings

recordings.FOLDER = Path(os.environ["SPECVIZ_TEST_TRACES"])
runpy.run_path(str(APP))
