# Every target says what it does: make help.
GO      ?= go
# Without paths in them, clones of one machine share what is compiled.
export GOFLAGS := -trimpath $(filter-out -trimpath,$(GOFLAGS))
# Without C, builds, tests and vet share what is compiled. The race detector needs it.
PURE    := CGO_ENABLED=0 $(GO)
CACHE   := .cache
BIN     := bin/hopscope
HARNESS := bin/hopscope-bench
VERSION := $(shell .ci/version.sh 2>/dev/null)
LDFLAGS := -s -w $(if $(VERSION),-X main.release=$(VERSION))
FUZZTIME ?= 10s
LONGTIME ?= 1h
TIMEOUT  ?= 60m

.DEFAULT_GOAL := help
.PHONY: help build cross release install-test helm demo servers test race bench fuzz fuzz-long lint mutate web web-check influxdb influxdb2 kafka python browser promtool alertmanager namespaces tshark torture docs results peers papers proto check clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: ## build bin/hopscope, and bin/hopscope-bench, which measures; print the size of each
	$(PURE) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/hopscope
	$(PURE) build -ldflags '$(LDFLAGS)' -o $(HARNESS) ./cmd/hopscope-bench
	@wc -c $(BIN) $(HARNESS) | awk '$$2 != "total" {printf "%s: %.1f MB\n", $$2, $$1/1e6}'

# Each system and each processor once; .ci/night builds every pair that docs/operating.md names.
SYSTEMS ?= linux/arm64 darwin/arm64 freebsd/amd64 windows/amd64

cross: ## build both programs for other systems
	@set -e; for system in $(SYSTEMS); do echo "cross $$system"; \
		CGO_ENABLED=0 GOOS=$${system%/*} GOARCH=$${system#*/} $(GO) build ./cmd/...; done

# Every pair that docs/operating.md names.
RELEASED ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,freebsd/amd64,freebsd/arm64,windows/amd64

release: ## make what users download, in dist/: archives, packages, lists of parts (SBOM), sums
	$(PURE) run ./internal/release -version '$(VERSION)' -systems '$(RELEASED)'

install-test: helm ## install the packages in a bare Debian in a directory, run, upgrade and remove them, and render the chart; needs root
	@.ci/debian.sh
	$(PURE) test -tags install -vet=off -count=1 -timeout 1h -v -run 'TestInstall|TestHelm|TestManPages' ./internal/release ./cmd/hopscope

helm: ## build Helm, which renders the chart in install-test (kept in .cache)
	.ci/helm.sh

demo: build ## start an emulated network, the collector and its page; no other service needed
	$(BIN) demo

influxdb: ## build the InfluxDB 1.8 that the tests run against (kept in .cache, which all clones of a machine share)
	.ci/influxdb.sh 1.8.10

influxdb2: ## build the InfluxDB 2.7 that make check runs against, too: its parser is Rust, which takes ten minutes
	.ci/influxdb.sh 2.7.12

kafka: ## fetch the Kafka broker that the tests run against (kept in .cache)
	.ci/kafka.sh

python: ## install pyarrow and DuckDB, which read what we write, HiGHS, which solves what we plan, scapy, which speaks STAMP, and networkx, which plans beside us (kept in .cache)
	.ci/python.sh

browser: ## install Chromium, which the tests of the page run
	@.ci/browser.sh

promtool: ## build promtool, which tests the alert rules (kept in .cache)
	.ci/promtool.sh

alertmanager: ## build Alertmanager, which the tests of alerts run against (kept in .cache)
	.ci/alertmanager.sh

namespaces: ## install iproute2, and say whether the tests may make networks of their own
	@.ci/namespaces.sh

tshark: ## install tshark, whose reading of sFlow, IPFIX and NetFlow 9 make check compares with ours
	@.ci/tshark.sh

# RACED are the packages in which goroutines share memory. make check runs their tests under the race detector, in place of running
# them twice; the others are pure, measure, or start programs whose goroutines are in these packages: .ci/night races those, too.
RACED ?= ./collector/... ./ingest/... ./p4/agent ./p4/loop ./p4/p4rt ./p4/steer ./sink/...
RACED_LIST = $(shell $(GO) list $(RACED))
OTHERS = $(filter-out $(RACED_LIST),$(shell $(GO) list ./...))

# COUNT= lets a package that passed with the same code and settings stay passed, so that a run of hours can be stopped and goes on.
COUNT ?= -count=1

# Tests wait for processes, windows and brokers more than they compute, so at least four packages run at a time, and four parallel tests
# of each, on any machine.
PACKAGES ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 4 ? 4 : n)))

# CHECK=1 makes it the test of make check: with all servers, and each package once, under the race detector where goroutines share memory.
# Both halves run, also where the first fails: one run names all that fails.
# Nothing is vetted here: make lint vets all of it, tests and tags included, with more analysers than go test has.
# Waiting for downloads costs no processor: what is set up, is set up side by side.
servers: ## install what the tests need; with CHECK=1, what make check needs beside
	@$(MAKE) --no-print-directory -j4 $(if $(CHECK),influxdb2 promtool alertmanager tshark) influxdb kafka python browser namespaces

# axe-core judges the page in TestPageAxe. web-check has installed it already in the gate.
AXE = sink/web/ui/node_modules/axe-core/axe.min.js
$(AXE): sink/web/ui/package-lock.json
	cd sink/web/ui && npm ci --no-audit --no-fund

# Without CHECK, it is what a newcomer waits for: no long tests, fewer rounds, and no symbols for debuggers in what is linked.
test: servers $(if $(CHECK),$(AXE)) ## install what the tests need and run all but the long ones, which make check runs
ifdef CHECK
	@failed=; \
	$(GO) test $(COUNT) -vet=off -p $(PACKAGES) -race -tags check -timeout $(TIMEOUT) $(RACED) || failed=1; \
	$(PURE) test $(COUNT) -vet=off -p $(PACKAGES) -tags check -parallel 4 -timeout $(TIMEOUT) $(OTHERS) || failed=1; \
	test -z "$$failed"
else
	$(PURE) test -short -vet=off -ldflags=-w -p $(PACKAGES) -parallel 4 -timeout $(TIMEOUT) ./...
endif

race: servers ## run the tests of everything that runs concurrently, under the race detector
	$(GO) test -race -timeout $(TIMEOUT) $(RACED)

torture: influxdb influxdb2 kafka ## break processes, disks, stores and clocks, and count; HOPSCOPE_TORTURE=full takes half an hour and more
	$(PURE) test -tags torture -vet=off -count=1 -timeout 3h -parallel 4 -v ./bench/torture

bench: build ## measure; RESULTS.md in bench/ says how to read it
	$(GO) test -run '^$$' -bench . -benchmem ./...

peers: build kafka ## measure other collectors on the same datagrams, half an hour; needs root
	.ci/peers.sh
	PATH="$$PWD/bin:$$PATH" $(HARNESS) peers --programs .cache/peers --outputs discard --seconds 0.25 --step 0.1 --start 8000 --format json >bench/results/peers.new
	PATH="$$PWD/bin:$$PATH" $(HARNESS) peers --programs .cache/peers --kafka .cache/kafka/4.1.0/lib --outputs file,kafka --payloads sflow,ipfix,netflow9 --rounds 1 --seconds 0.25 --step 0.1 --start 8000 --format json >bench/results/peers-outputs.new
	for name in peers peers-outputs; do mv bench/results/$$name.new bench/results/$$name.json || exit 1; done
	$(PURE) test ./bench/harness -run TestResultsPage -update

# RESULTS are the benches of which bench/RESULTS.md has tables, by the name of their file: the rest of the line is the command.
define RESULTS
pint-5 pint --figure 5
pint-9 pint --figure 9
pint-11 pint --figure 11
pint-loops pint --figure loops
world findings world --seed 9501
endef
export RESULTS

results: build ## measure what bench/RESULTS.md has as files in bench/results, half an hour and more, and write the page
	@echo "$$RESULTS" | while read -r name command; do echo "results: $$command"; $(HARNESS) $$command --format json >bench/results/$$name.new && mv bench/results/$$name.new bench/results/$$name.json || exit 1; done
	$(PURE) test ./bench/harness -run TestResultsPage -update

# TOPOLOGIES has graphs/, demands/ and index.csv of the Topology Zoo in Repetita's format; without it, files that need it stay as they are.
TOPOLOGIES ?=

papers: build ## measure what docs/papers.md lacks, hours at most and resumable, and write the page; TOPOLOGIES=DIR for wide area networks
	@list=bench/harness/papers_commands.txt; n=$$(wc -l <$$list); k=0; while read -r name command; do k=$$((k+1)); \
		if [ -s bench/results/$$name.json ]; then echo "papers: $$k of $$n: $$name is there"; continue; fi; \
		case "$$command" in *"--topologies DIR"*) \
			if [ -z "$(TOPOLOGIES)" ]; then echo "papers: $$k of $$n: $$name needs TOPOLOGIES=DIR"; continue; fi; \
			command=$$(printf '%s' "$$command" | sed 's|--topologies DIR|--topologies "$(TOPOLOGIES)"|');; esac; \
		echo "papers: $$k of $$n: $$command"; \
		eval "$(HARNESS) $$command --format json" </dev/null >bench/results/$$name.new && mv bench/results/$$name.new bench/results/$$name.json || exit 1; \
	done <$$list
	$(PURE) test ./bench/harness -run TestPapersPage -update

fuzz: ## run every fuzz target for FUZZTIME: a duration, or a number of inputs such as 1000x
	.ci/fuzz.sh $(FUZZTIME)

fuzz-long: ## compare both decoders over mutations of all captures for LONGTIME, with a new seed
	$(GO) test ./internal/plain -run '^TestDifferential$$' -v -timeout 0 -mutation-time $(LONGTIME)

lint: ## check with gofmt, go mod tidy, go vet and staticcheck
	@test -z "$$(gofmt -l .)" || { echo "not gofmt-ed:"; gofmt -l .; exit 1; }
	$(GO) mod tidy -diff
	$(PURE) vet -tags check,torture,install ./...
	$(PURE) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags check,torture,install ./...

web: ## build the page into sink/web/dist (needs node and npm)
	cd sink/web/ui && npm ci --no-audit --no-fund && npm run build

web-check: web ## check that the committed page is what its sources give
	git diff --exit-code -- sink/web/dist
	@test -z "$$(git status --porcelain -- sink/web/dist)" || { echo "sink/web/dist holds files that are not committed"; exit 1; }

docs: ## write the generated pages of docs/ and deploy/hopscope.yaml
	$(GO) test ./cmd/hopscope -run TestPages -update
	$(GO) test ./decode/demux -run TestFormatsPage -update
	$(GO) test ./sink/web -run TestOpenAPI -update

proto: ## write the Go code of p4/agent/agentpb/agent.proto (needs protoc)
	.ci/proto.sh

mutate: ## break lines of core functions one by one, and count how many the tests notice; goes on where it was stopped
	$(GO) run ./internal/mutate

check: ## run exactly what CI runs
	.ci/run

clean: ## remove what was built (not .cache)
	rm -rf bin dist
