"""`make soak`: everything that happens to servers, mixed, for twenty minutes.

Takes minutes and a seed; starts a server of each host, all side by side, and gives a
table and a JSON file in build/. It ends with 1 when a request is lost and nobody can
say why, when something grows that should not, or when anything is left behind.

The way: `mix` (what happens when, from the seed) -> `faults` (it is done) and `clients`
(meanwhile, requests) -> `samples` (what the server takes), `deaths` (who died, of what)
-> `lost` (what explains each loss), `slopes` -> `result` -> `table`. `hosts` starts
servers and `onlookers` looks at them, as operators do; `run` composes.

Servers, requests and processes are those of the tests (tests/harness).
"""
