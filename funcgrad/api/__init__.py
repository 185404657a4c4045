"""The transformations as users call them: arguments checked, pytrees in, pytrees out."""
