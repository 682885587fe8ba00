"""Benchmarks that print ratios, each side by side with plain code in one run; nothing fails for being slow."""
