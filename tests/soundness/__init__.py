"""Evidence for "never below the truth": random and adversarial runs of every bound against definitions in balls.

``python -m tests.soundness --cases 1000000`` draws that many cases, evaluates the bound and, independently, its formula
in ball arithmetic (`dpcalc.certify`), for the doubles given and for the decimals they print as. It prints a tally per
bound. A value below its definition is shrunk to a one-line reproducer.
"""
