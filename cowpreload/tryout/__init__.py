"""`cowpreload try`: the user's own application without us and with us, side by side.

The way of the data: probe -> plan -> run (ways, own_config) -> answers, advice -> page.
plan, answers, advice, logs and page are pure and know no server; run.py starts them.
"""
