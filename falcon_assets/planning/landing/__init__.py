"""When and where data that lands from outside is looked for."""
