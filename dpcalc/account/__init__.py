"""What a training job wrote of itself, and the account of what really ran."""
