"""SLAs: how far they are evaluated, and their breaches."""
