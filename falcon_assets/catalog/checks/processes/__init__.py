"""What a process says about its workflow: files, variables, settings of Spark."""
