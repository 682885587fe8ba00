"""Where feeds lie, and what their stores can do."""
