"""Notification: messages to people about events of instances, and their receivers."""
