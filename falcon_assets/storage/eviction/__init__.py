"""What retention does with instances and with what is staged of them: removing, archiving, freeing the space."""
