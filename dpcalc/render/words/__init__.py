"""Sentences and rows of tables about a case, before any writer lays them out.

It imports the report, the theorems' records and the format of numbers.
"""
