"""Features: a folder for each thing that the product does beyond running instances that are ready."""
