"""`make test-deep`: test suites of others, in a forked child of a frozen process.

plan (what is run) -> runs (process pairs) -> compare (what is new) -> tables (what is
said). `explained` holds the differences that are consequences of immortality. Needs
the standard library alone; the programs that run in the pairs are in tests/deep.
"""
