"""Who is told what became of instances, and when."""
