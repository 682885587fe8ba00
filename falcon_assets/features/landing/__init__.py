"""Landing: data from outside is searched for, reported by others, and recorded."""
