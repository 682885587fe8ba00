"""How facts become rows: pure reductions, and the transactions that store them."""
