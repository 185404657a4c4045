"""What makes the generated parts of the documentation: reference, coverage, gallery, drawings."""
