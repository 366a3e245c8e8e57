# Shortcuts; every one is a script or a Go command that works without make.

.PHONY: help quickstart build test fast fuzz bench faults broken clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

quickstart: ## build tandem, install what the example needs, and tune it
	scripts/quickstart

build: ## build bin/tandem
	scripts/require-go
	go build -o bin/tandem ./cmd/tandem

test: ## run every check (what CI runs)
	scripts/test

fast: ## check formatting, vet and the house rules, and test the fast packages
	scripts/test quick

fuzz: ## fuzz every parser for 30 seconds each
	scripts/fuzz 30s

bench: ## measure the server's throughput and latency
	go run ./bench/server

faults: ## kill and stop servers and workers 200 times, and look for what is lost
	go run ./bench/faults

broken: ## break one rule at a time, and require that a test notices
	scripts/broken-rules

clean: ## remove what was built, and the Python environments
	rm -rf bin .venv .venv-test
