"""Programs of the loop language that are written down, instead of made of a user's program."""
