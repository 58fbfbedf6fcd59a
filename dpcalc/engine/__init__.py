"""From a run and a question to a case: select theorems, answer, solve, compare, gate."""
