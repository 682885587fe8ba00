"""What people do to instances: run, rerun, stop, wait for."""
