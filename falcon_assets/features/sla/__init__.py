"""SLAs: instances that are not available, started or ended by their deadline."""
