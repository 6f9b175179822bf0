"""A traced step and a budget in, a plan whose measured peak is within the budget out."""
