"""Many scripts at once: which files, judging them side by side, and the formats that a CI reads."""
