"""Roll-ups: feeds whose instances are made of instances of other feeds, without a job."""
