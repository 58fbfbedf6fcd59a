"""Wrong input on purpose: whatever is typed or read, a refusal is one line and an exit code.

A target makes one case from a seeded generator, feeds it to dpcalc and raises where that does anything but answer or
refuse. ``python -m tests.fuzz --seconds 60`` runs all targets, with a limit on memory and a watchdog; a finding is
printed with the words that repeat it. The tests run a few cases of each in the same way.
"""
