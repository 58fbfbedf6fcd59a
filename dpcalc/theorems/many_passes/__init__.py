"""Several passes whose iterates stay hidden: cyclic, full batch and shuffled, and training that goes on to forget."""
