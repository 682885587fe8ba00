"""What is known of instances, asked of the ledger."""
