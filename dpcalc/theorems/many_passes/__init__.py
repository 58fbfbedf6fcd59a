"""Several passes with hidden iterates: cyclic, full-batch and shuffled, and unlearning."""
