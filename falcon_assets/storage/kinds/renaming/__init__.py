"""File systems whose rename is atomic: what comes and what goes does so in one step."""
