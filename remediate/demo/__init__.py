"""The embedded incident: a sandbox with a simulated A100, laid out in a temporary folder."""
