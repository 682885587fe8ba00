"""What coordinators run: processes and replications, each on one cluster."""
