"""The GPU subject: power limit, clocks, persistence and what throttles them, through NVML and nvidia-smi."""
