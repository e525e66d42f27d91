"""What the benchmark's servers serve: the example site, started in different ways."""
