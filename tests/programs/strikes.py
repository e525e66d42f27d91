"""A gunicorn configuration file with one setting of ours."""

cow_strikes = 9
