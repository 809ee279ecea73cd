"""Roofline: what the chip waits for."""

from specviz.ui import frame, plot, roofline

frame.page_setup("Roofline")
roofline.heading()
scene = roofline.sidebar()
roofline.panels(scene)
plot.library()
