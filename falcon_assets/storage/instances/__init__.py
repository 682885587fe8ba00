"""The instances of feeds on a store: which ones are there, complete or not, and what they hold."""
