"""gunicorn with cow workers: `gunicorn shop.wsgi`, which reads this file by its name.

The cow_ names are settings of cowpreload; `cowpreload settings` explains all of them.
"""

# Where the server listens; put a proxy such as nginx in front of it.
bind = "127.0.0.1:8000"

# How many worker processes to fork; each costs little more than its private memory.
workers = 4

# The worker class that loads, warms up and freezes the site before the first fork.
worker_class = "cow"

# Requests made in the master before the fork: all pages that need nothing but their
# address, each after a trial in a child, and one of each kind that needs a number.
cow_warmup = ["auto", "/product/1/", "/browse/1/"]

# Left out of "auto": what only the benchmarks and tests ask for.
cow_warmup_skip = ["/nelson/", "/probe/"]

# A worker whose private memory passes this is replaced after its requests in flight.
cow_max_private = "200M"

# A worker that passes this, for example stuck in one request, is killed at once.
cow_max_private_hard = "400M"
