"""From typed programs to native code."""
