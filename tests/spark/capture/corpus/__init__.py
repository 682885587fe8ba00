"""Small programs, each with what it truly reads and writes: known from how it is made, not from what anything says."""
