"""A database backend of Django with a pool, as its PostgreSQL one has."""
