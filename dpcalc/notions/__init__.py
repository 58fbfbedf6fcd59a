"""Privacy notions and the conversions between them."""
