"""Profiles: load, check, extend, select."""
