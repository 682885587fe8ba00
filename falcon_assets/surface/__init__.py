"""How people and Dagster reach the product: commands, jobs in the launchpad, the code location."""
