"""The shop: a catalogue in memory, products and reviews in the database, and pages."""
