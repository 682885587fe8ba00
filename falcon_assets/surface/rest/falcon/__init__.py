"""Apache Falcon's own paths (``/api/...``), for its clients: each is an operation of ours, answered in its shape."""
