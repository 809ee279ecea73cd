"""Roofline: what the chip waits for."""

from specviz.ui import frame, imports

frame.page_setup("Roofline")
imports.numpy_first()

from specviz.ui import plot, roofline  # noqa: E402

roofline.heading()
scene = roofline.sidebar()
roofline.draw(scene)
plot.library()
