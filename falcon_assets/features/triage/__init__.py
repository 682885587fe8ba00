"""Why an instance is not there: from what it lacks to what brings that, back to the causes."""
