"""The outbox: events of instances for their receivers, recorded before they are sent, in order, at least once."""
