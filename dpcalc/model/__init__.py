"""What is run and asked: parameters, algorithms, losses, schedules, typed and frozen."""
