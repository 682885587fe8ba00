"""Data that lands from outside: looked for, reported, recorded."""
