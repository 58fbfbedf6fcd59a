"""Runs and questions: parameters, algorithms, losses and schedules, typed and frozen."""
