"""What is said of a case, as sentences and rows of tables, before any writer lays it out.

It imports the report, the theorems' records and how numbers are written.
"""
