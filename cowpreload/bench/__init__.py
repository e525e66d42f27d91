"""Real servers, real requests, real /proc: for the demo, the tests and the figures.

Loads go to 127.0.0.1 only and are bounded in count and time.
"""
