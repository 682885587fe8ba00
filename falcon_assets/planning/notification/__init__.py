"""Which events are told, whom, when and in what words."""
