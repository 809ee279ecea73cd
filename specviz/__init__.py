"""See speculative decoding: a drafter and a target run for real, every round becomes a record, every picture is drawn
from records.
"""

import os

__version__ = "0.1.0"

# Where other programs want the processor too (the visitor's browser, on a laptop), torch's idle threads spin and starve
# the ones that work: a read of 5 rows took 210 to 260 ms so, and 96 to 121 ms with threads that sleep. OpenMP reads this
# once, when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
