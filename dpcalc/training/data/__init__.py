"""Records: read from files, mapped by public rules and brought within bounds; this folder knows nothing of training."""
