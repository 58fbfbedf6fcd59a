"""What an attacker can do against a run, beside its guarantee."""
