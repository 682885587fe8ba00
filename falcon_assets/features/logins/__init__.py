"""Logins: who came over the network, how they prove it, and which role that gives them."""
