"""Stores without rename, as S3: the availability flag is the switch."""
