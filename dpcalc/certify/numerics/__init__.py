"""Ball arithmetic and its functions: nothing here knows of a run, and nothing comes from `dpcalc.numerics`."""
