"""The script subject: how an inference script is laid out, and careful patches to it."""
