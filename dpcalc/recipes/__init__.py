"""Recipes: privacy budgets as YAML files, and the gates that keep them."""
