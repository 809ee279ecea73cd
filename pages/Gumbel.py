"""Gumbel: one noise, two models. The text is the target's, whoever drafts and however far."""

from specviz.ui import frame, imports

frame.page_setup("Gumbel")
imports.numpy_first()

from specviz.ui import gumbel, plot  # noqa: E402

gumbel.heading()
gumbel.race()
slot = gumbel.invariance()
gumbel.match()
gumbel.replay()
plot.library()
gumbel.work(slot)  # last, for it takes its time
