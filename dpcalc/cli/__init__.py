"""The command line."""

import gc

# A query lives for some milliseconds, in which a collection at every 700th new object finds nothing to free.
gc.set_threshold(50_000, 20, 20)
