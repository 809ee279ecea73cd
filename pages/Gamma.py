"""Gamma: how many to draft. What it should bring, what it brought by the clock, and where the speed went."""

from specviz.ui import frame, imports

frame.page_setup("Gamma")
imports.numpy_first()

from specviz.ui import gamma, plot  # noqa: E402

gamma.heading()
scene = gamma.sidebar()
gamma.theory(scene)
slot = gamma.measured(scene)
gamma.write_address()
gamma.engine(scene)
plot.library()
gamma.measure(slot)  # last, for it takes its time
