"""An instance, computed to be looked at; nothing of it stays."""
