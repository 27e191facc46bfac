"""Judging an environment from recorded facts: what installs well and breaks later. Pure, nothing is imported or run."""
