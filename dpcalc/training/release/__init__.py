"""From a budget to a model: execution of the accounted run, metrics, and the model file."""
