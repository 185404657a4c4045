"""Passes: ``Program -> Program``. Each one knows forms, none knows a primitive."""
