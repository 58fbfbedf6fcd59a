"""The Python API: functions that mirror the commands. ``dpcalc`` itself has their names, and their types in a stub."""
