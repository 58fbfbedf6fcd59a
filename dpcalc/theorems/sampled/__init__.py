"""Steps on randomly drawn batches, with released or hidden iterates."""
