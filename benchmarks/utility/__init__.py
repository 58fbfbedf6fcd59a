"""Private linear models by dpcalc and by others, on the same rows: ``python -m benchmarks.utility``.

`contest` names data sets and tools. `sets` reads the data, `problem` splits it and maps its rows, `tools` are the
contestants (`gradients`, `objectives` and `packages` have their arithmetic), `budgets` puts one budget in the words of
each, `results` keeps a line for every fit, and `report` writes docs/utility.md. Rendering needs the standard library
alone; fits need the packages of requirements.txt in an environment of their own.
"""
