"""See speculative decoding: a drafter and a target run for real, every round becomes a record, every picture is drawn
from records.
"""

import os

__version__ = "0.1.0"

# Where other programs want the processor too (the visitor's browser, on a laptop), torch's idle threads spin and starve
# the ones that work: a read of five rows took twice as long so as with threads that sleep. OpenMP reads this once, when
# torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
