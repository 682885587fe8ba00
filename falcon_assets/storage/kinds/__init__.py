"""What instances can lie on: one protocol, and a package for each kind that fulfils it."""
