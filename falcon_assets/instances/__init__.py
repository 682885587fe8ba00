"""The life of instances: what they wait for, how they run, what is told of them."""
