"""SLAs: which instances are not there, have not started or have not ended by their time."""
