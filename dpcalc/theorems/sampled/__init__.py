"""Steps on batches that are drawn at random, released or hidden."""
