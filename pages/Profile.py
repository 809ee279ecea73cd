"""Profile: is it really memory? This machine measured, and somebody's server judged."""

from specviz.ui import frame, imports

frame.page_setup("Profile")
imports.numpy_first()

from specviz.ui import profiler, words  # noqa: E402

complaint = profiler.arrival()  # before the form is drawn: it sets it
with frame.heading("Profile", words.PROFILE["lead"], profiler.badges):
    pass
detail, slot = profiler.buttons()
profiler.shown(detail)
profiler.form(detail, complaint)
profiler.measure(slot)  # last, for it takes its time
