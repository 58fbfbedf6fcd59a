"""Secret orders: the position of a record is hidden as well."""
