"""The command line: from words to questions, and from answers to output. It may import everything."""

import gc

# A query lives for some milliseconds, in which a collection at every 700th new object finds nothing to free: one at
# 50000 new objects takes 20 ms and frees 500 of them.
gc.set_threshold(200_000, 20, 20)
