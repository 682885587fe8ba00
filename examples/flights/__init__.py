"""Real flights land as files, and the processes of ``entity_defs`` run over them: `make demo`, `make up`."""
