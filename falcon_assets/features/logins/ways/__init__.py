"""Ways in, each with its declaration in the file of logins, and with how it finds out who somebody is."""
