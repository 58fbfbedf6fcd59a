"""Help of the command line: pages of options, the manual page, search, and hints for unknown words."""
