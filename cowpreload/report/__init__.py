"""From records to what people read. Sees only `records` and `units`."""
