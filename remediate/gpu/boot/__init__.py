"""Settings that survive a reboot: a systemd unit that applies them again from a fixed file."""
