"""Attacks: what an attacker can do against a run."""
