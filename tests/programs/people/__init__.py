"""An application of Django's: users of another kind than its own."""
