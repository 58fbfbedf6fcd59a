"""How reports are printed, drawn and written, and what is said where one cannot be."""
