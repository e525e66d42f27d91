# cowpreload: `make test` and `make demo` set up everything they need, inside build/.

PYTHON ?= python3
ENVS = $(PYTHON) tools/envs.py

.PHONY: help test test-all test-others test-next test-deep test-faults soak test-asan fuzz demo lint format docs docs-site wheels clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

test:  ## every test, on the newest interpreter (TESTS="tests/unit -k x")
	$(ENVS) test $(TESTS)

test-others:  ## on the other interpreters, what differs by interpreter
	$(ENVS) test-others $(TESTS)

test-all:  ## every test, on every interpreter found from 3.10 on
	$(ENVS) test-all $(TESTS)

test-next:  ## every test on 3.14, 3.15 and PyPy of Debian unstable (ON=3.15, ARGS="-k x")
	$(PYTHON) tools/next.py $(ON) -- $(ARGS)

test-faults:  ## every fault in full, under load; the table is build/faults.json
	$(ENVS) test-faults $(TESTS)

soak:  ## all faults mixed, for 20 minutes (SOAK_MINUTES=2, ARGS="--seed 7 --hosts asgi")
	$(ENVS) soak $(ARGS)

test-asan:  ## the native core under the address sanitizer
	$(ENVS) asan

test-deep:  ## the tests marked deep; CPython's and Django's own, frozen and forked; fuzzers
	$(if $(DEEP),,$(ENVS) test-all -m deep)
	$(if $(DEEP),,$(MAKE) fuzz)
	PYTHONPATH=tools $(PYTHON) -m deep $(DEEP)

fuzz:  ## the core's and Python's readers on any bytes, a minute each (FUZZ="board")
	PYTHONPATH=tools $(PYTHON) -m deep.fuzz $(FUZZ)

demo:  ## the example site under both servers, before and after
	$(ENVS) demo

lint:  ## ruff, mypy, clang-format, documented settings
	$(ENVS) lint

format:  ## rewrite the sources as the lint wants them
	$(ENVS) format

docs:  ## write what is generated in docs/
	$(ENVS) docs

docs-site:  ## the documents as a site, in build/site
	$(ENVS) docs-site

wheels:  ## sdist and wheels into dist/, each tried in an empty environment (ON=next)
	$(PYTHON) tools/wheels.py $(if $(ON),--$(ON))

clean:  ## remove what was built
	rm -rf build dist cowpreload/native/_*.c cowpreload/native/*.so *.egg-info
