"""From a budget to a model: carrying out what was accounted, measuring it, and the model file."""
