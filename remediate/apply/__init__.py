"""Applying a plan: lock, journal, execution, rollback."""
