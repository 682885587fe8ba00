"""Assets and jobs of feeds, processes and replications."""
