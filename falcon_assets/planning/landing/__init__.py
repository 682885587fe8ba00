"""When and where collectors search for data that lands from outside."""
