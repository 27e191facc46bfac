"""Known regressions and vulnerabilities: the shipped data, what it says of versions and pins, and asking OSV."""
