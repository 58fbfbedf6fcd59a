"""What the command line says of itself: pages of options, the manual, and what was meant by a wrong word."""
