"""Views of instances: lists, details, reasons, logs; nothing is changed."""
