"""File systems whose rename is atomic: instances appear and disappear in one step."""
