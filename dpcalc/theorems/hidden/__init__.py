"""Orders that stay secret: the position of a record is hidden as well."""
