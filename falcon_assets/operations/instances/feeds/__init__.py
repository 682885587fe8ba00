"""Instances of feeds: lists, versions, who writes and reads them, why they are not there."""
