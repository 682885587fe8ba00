"""Who writes and who reads what: producers, cycles, reading of own outputs."""
