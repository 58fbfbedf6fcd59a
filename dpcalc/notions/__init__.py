"""Privacy notions and the conversions between them.

Guarantees round to the safe side: epsilon, delta, noise and Renyi divergences up, an admissible mu down. A lower bound
rounds down and is named so: `_down`, or `LowerBound`.
"""
