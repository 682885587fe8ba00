"""Which instances are evicted, when, and what keeps them."""
