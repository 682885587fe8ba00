"""Operations of users on instances: run, rerun, stop, wait for."""
