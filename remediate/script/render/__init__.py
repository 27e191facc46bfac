"""A new inference script from what a user's script does: the recipe that is read, and the template that is filled."""
