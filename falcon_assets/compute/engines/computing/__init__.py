"""What computes an instance on Spark, once its engine has been asked to."""
