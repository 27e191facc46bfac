"""Runs: applying a plan and undoing it, with lock, journal and rollback."""
