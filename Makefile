# Everything one does with this repository. `make` alone lists it.

.DEFAULT_GOAL := help
.PHONY: help demo test test-deep bench bench-paging bench-import bench-relay bench-search loadtest openapi lint audit fmt build deps libchdb clean-demo

CARGO ?= cargo
# The API's port of the demo; all other ports are free ones.
DEMO_PORT ?= 8080
# What is passed on to the test runner, as in: make test ARGS='-E test(paging)'
ARGS ?=
# The load tests to run; all but the soak without.
NAMES ?=

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Run everything on this machine, with a year of demo data; Ctrl-C stops it
	@scripts/with-stores true
	$(CARGO) build --locked --release
	@exec scripts/with-stores $(CARGO) run --locked --release --quiet -- up --demo --port $(DEMO_PORT)

test: ## Run all tests, on stores of their own, also beside a running demo
	@scripts/with-stores scripts/run-tests $(ARGS)

test-deep: ## Run all tests and the long ones
	@scripts/with-stores scripts/run-tests --deep $(ARGS)

bench: ## Time the analytics beside plain SQL (docs/performance.md); TIDEMARK_BENCH_DIR=DIR keeps what is seeded
	@scripts/with-stores scripts/bench analytics

bench-paging: ## Time the lists in an organization of 70,000 videos
	@scripts/with-stores scripts/bench paging dev

bench-search: ## Measure search over a million captions, beside pg_trgm
	@scripts/with-stores scripts/bench search

bench-relay: ## Time how soon a scrape is in every total and found by search
	@scripts/with-stores scripts/bench relay

loadtest: ## Run the k6 scripts of loadtest/ against the running demo; NAMES="spike soak" chooses
	@scripts/loadtest $(NAMES)

bench-import: ## Time imports, until visible everywhere (TIDEMARK_BENCH_ROWS rows)
	@scripts/with-stores scripts/bench import

openapi: ## Write docs/openapi.json, the API's document, anew
	TIDEMARK_TEST_ACCEPT=1 scripts/with-stores scripts/run-tests -E 'test(the_document_is_the_one_that_was_reviewed)'

lint: ## Check the form of the code and what clippy says of it
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings

audit: ## Ask what is known of the dependencies: advisories, licences, sources (cargo-deny and cargo-audit)
	@scripts/audit

fmt: ## Bring the code into form
	$(CARGO) fmt

build: ## Build the program for use: target/release/tidemark
	$(CARGO) build --locked --release

deps: ## Install what is missing: Postgres, and ClickHouse as a library
	@scripts/with-stores true

libchdb: ## Install ClickHouse as a library into the user's cache, and say where
	@scripts/with-stores printenv TIDEMARK_LIBCHDB

clean-demo: ## Delete the demo with all its data
	rm -rf .tidemark
