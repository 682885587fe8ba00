"""What is known of instances: read, late, newest, asked to run again."""
