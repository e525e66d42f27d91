"""What the tests start, ask and load servers with.

Theirs alone: nothing here is shared with cowpreload.bench, so that a fault of the one
shows in the other. Conditions are waited for with a deadline; everything that was
started is ended and reaped by pid.
"""
