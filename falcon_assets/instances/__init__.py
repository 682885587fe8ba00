"""The life of instances: waiting for inputs, running, and views of them."""
