"""Executors of clusters: whether they answer and how busy they are, for coordinators and for people."""
