"""What the product does beyond instances that run when they are ready: a folder each."""
