"""Notification: messages about events of instances, their receivers, and their delivery."""
