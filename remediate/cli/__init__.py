"""The command line: one module per command; options, one call, print, exit code."""
