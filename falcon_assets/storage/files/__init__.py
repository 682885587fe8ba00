"""What a file system can do with files, where file systems differ."""
