"""Rows to come."""

TABLE: dict = {}
