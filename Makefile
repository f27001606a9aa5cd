# Commands for this repository. `make` lists them.

.DEFAULT_GOAL := help
.PHONY: help demo test test-deep test-days release-fixture test-clickhouse bench bench-bulk bench-events bench-logins bench-paging bench-pictures bench-import bench-relay bench-search bench-tenants loadtest openapi ui ui-types ui-screenshots bench-ui clients client-types lint audit fmt build deps libchdb clean-demo

CARGO ?= cargo
# Port of the demo's API; all other ports are chosen freely.
DEMO_PORT ?= 8080
# How the demo is built: like the tests; release answers faster, and takes three times as long to build.
DEMO_PROFILE ?= dev
# Arguments for the test runner: make test ARGS="-E 'test(paging)'"
ARGS ?=
# Load tests to run; default: all except the soak.
NAMES ?=

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Run everything on this machine, with a year of demo data; Ctrl-C stops it
	@scripts/with-stores true
	$(CARGO) build --locked --profile $(DEMO_PROFILE)
	@exec scripts/with-stores $(CARGO) run --locked --profile $(DEMO_PROFILE) --quiet -- up --demo --port $(DEMO_PORT)

test: ## Run all tests on databases of their own; a running demo is not touched
	@scripts/with-stores scripts/run-tests $(ARGS)

test-deep: ## Run all tests, including the long ones
	@scripts/with-stores scripts/run-tests --deep $(ARGS)

test-days: ## Run the tests with the service clock on thirty days; DAYS="2028-02-29 2026-12-31T23:50" selects
	@scripts/with-stores scripts/test-days $(ARGS)

test-clickhouse: ## Check schemas, views and statements on another ClickHouse: VERSION=26.9
	@scripts/test-clickhouse "$(VERSION)" $(ARGS)

bench: ## Compare the analytics with plain SQL (docs/performance.md); TIDEMARK_BENCH_DIR=DIR keeps the data
	@scripts/with-stores scripts/bench analytics

bench-bulk: ## Time batches of 500 records, refreshes, and exports of a million rows
	@scripts/with-stores scripts/bench bulk

bench-events: ## Measure 10,000 open streams of events: memory, arrival of an event, other requests
	@scripts/with-stores scripts/bench events

bench-paging: ## Time the lists in an organization of 70,000 videos
	@scripts/with-stores scripts/bench paging dev

bench-search: ## Measure search over a million captions, compared with pg_trgm
	@scripts/with-stores scripts/bench search

bench-pictures: ## Measure how fast pictures are copied and served
	@scripts/with-stores scripts/bench pictures

bench-relay: ## Time until a scrape is in every total and found by search
	@scripts/with-stores scripts/bench relay

bench-tenants: ## Time leases and retention with 10,000 organizations
	@scripts/with-stores scripts/bench tenants

bench-logins: ## Time the API beside the heaviest queries of a login of embedded ClickHouse
	@scripts/with-stores scripts/bench logins

loadtest: ## Run the k6 scripts of loadtest/ against the running demo; NAMES="spike soak" selects
	@scripts/loadtest $(NAMES)

bench-import: ## Time imports until visible everywhere (TIDEMARK_BENCH_ROWS rows)
	@scripts/with-stores scripts/bench import

release-fixture: ## Rewrite tests/releases/0.1.0, until 0.1.0 is released
	TIDEMARK_TEST_ACCEPT=1 scripts/with-stores scripts/run-tests -E 'test(stores_of_0_1_0)'

openapi: ## Rewrite docs/openapi.json
	TIDEMARK_TEST_ACCEPT=1 scripts/with-stores scripts/run-tests -E 'test(openapi_document_matches_docs)'

ui: ## Format the dashboard, build it into ui/dist, which is committed, and check it
	@scripts/install-ui
	npm --prefix ui run --silent format
	npm --prefix ui run build
	npm --prefix ui run verify

ui-types: ## Rewrite the dashboard's types of the API from docs/openapi.json
	@scripts/install-ui
	npm --prefix ui run types

ui-screenshots: ## Save pictures of every page of the running demo in target/screenshots
	@scripts/install-ui
	TIDEMARK_TEST_CHROMIUM=$$(scripts/install-chromium) npm --prefix ui run screenshots

bench-ui: ## Time the dashboard of the running demo in Chromium, beside the budgets
	@scripts/install-ui
	TIDEMARK_TEST_CHROMIUM=$$(scripts/install-chromium) npm --prefix ui run bench

client-types: ## Rewrite the types of clients/ from docs/openapi.json
	@scripts/install-ui
	@scripts/client-types

clients: ## Pack the clients for TypeScript and Python into target/clients
	@scripts/pack-clients

lint: ## Check formatting and run clippy; warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

audit: ## Check dependencies: advisories, licences, sources (cargo-deny, cargo-audit)
	@scripts/audit

fmt: ## Format the code
	$(CARGO) fmt --all

build: ## Build the release binary: target/release/tidemark
	$(CARGO) build --locked --release

deps: ## Install Postgres and libchdb if they are missing
	@scripts/with-stores true

libchdb: ## Install libchdb into the user's cache and print its path
	@scripts/with-stores printenv TIDEMARK_LIBCHDB

clean-demo: ## Delete the demo and its data
	rm -rf .tidemark
