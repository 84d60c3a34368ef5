# Every target fetches what it needs and says what; `make` alone lists them.

export CGO_ENABLED := 0
export GOFLAGS ?= -buildvcs=false
export BPF2GO_CC := clang-19
export BPF2GO_STRIP := llvm-strip-19
# Debian keeps asm/types.h in a directory per architecture, where clang does not look when it compiles for BPF.
export BPF2GO_CFLAGS := -idirafter /usr/include/$(shell uname -m)-linux-gnu

VERSION := $(shell scripts/version.sh)
REVISION := $(shell scripts/version.sh --revision)
DEB_VERSION := $(shell scripts/version.sh --debian)
# What Debian's policy asks of its own packages and does not fit here is named in the file.
LINTIAN := --allow-root --fail-on error,warning --suppress-tags-from-file packaging/debian/lintian-suppressed
# What needs neither root nor long: te/segment and sim/pcc search for a while.
UNIT := ./config ./packet/... ./lb/... ./te/topology/... ./te/spf ./te/srpolicy ./te/protection ./te/maxflow \
	./sim/queueing ./sim/workload ./sim/hunting ./datapath/model ./agent/api ./agent/signing ./cmd/sextant
AS_ROOT := $(CURDIR)/scripts/as-root.sh

.NOTPARALLEL:
.PHONY: help build demo test unit kube kube-programs test-kube test-vm lint house generate check-generate web bench bench-forwarding bench-paths bench-kube deb release test-deb fuzz site figures fmt clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile

build: ## Build ./sextant, one static binary; needs Go alone
	@scripts/deps.sh go
	go build -trimpath -ldflags '$(LDFLAGS) -buildid= -X main.version=$(VERSION) $(if $(REVISION),-X sextant/agent/monitoring.revision=$(REVISION))' -o sextant ./cmd/sextant

demo: build ## Service hunting against random choice, and downloads while servers leave, in network namespaces of this machine
	@scripts/deps.sh bpffs
	$(AS_ROOT) ./sextant demo

test: ## Everything that must hold: lint, house rules, generated objects, all tests as root, 2000 inputs for each fuzz target; PKG=./lb/pool RUN=TestX: one
	@scripts/deps.sh go generate lint test bpffs
ifneq ($(PKG)$(RUN),)
	@RUN='$(RUN)' scripts/test.sh $(PKG)
else
	@scripts/lint.sh
	@go test -count=1 ./test/lint
	@scripts/check-generate.sh
	@scripts/test.sh
	@scripts/test-kube.sh
	@cd python && python3 -m unittest -q
	@scripts/fuzz.sh --brief
endif

unit: ## The decisions and the command line, without root; under a minute
	@scripts/deps.sh go
	@go test $(UNIT)

kube: ## Build ./sextant-kubernetes, the controller and node daemon for Kubernetes
	@scripts/deps.sh go
	cd controller/kubernetes && go build -trimpath -ldflags '-s -w -buildid= -X main.version=$(VERSION)' -o ../../sextant-kubernetes ./cmd/sextant-kubernetes

kube-programs: ## Build the API server and etcd for tests, into the user's cache; about 15 minutes the first time
	@scripts/deps.sh go
	@scripts/kube-programs.sh

test-kube: kube-programs ## Kubernetes: the tests of the module controller/kubernetes as root, with a real API server; PKG=./plan RUN=TestX: one
	@scripts/deps.sh go test bpffs
	@RUN='$(RUN)' TAGS=conformance scripts/test-kube.sh $(PKG)

test-vm: ## The tests that meet the kernel, in virtual machines with Debian's oldest and newest kernel; about 10 minutes
	@scripts/deps.sh go vm
	@$(AS_ROOT) scripts/vm/test.sh

lint: ## gofmt, vet, staticcheck, clang-format, shellcheck, actionlint
	@scripts/deps.sh go lint
	@scripts/lint.sh

house: ## The rules of the house: who imports whom, sizes, documentation, nothing unused or unfinished
	@scripts/deps.sh go
	@go test -count=1 ./test/lint

generate: ## Compile bpf/ and write the objects and their Go into datapath/
	@scripts/deps.sh go generate
	@scripts/check-generate.sh --write

web: ## Build the console in agent/web/bundle from agent/web/src; needs Node 20, and fetches esbuild and preact
	cd agent/web && npm ci --ignore-scripts --no-audit --no-fund && node build.mjs

check-generate: ## Compare the committed objects with freshly compiled ones
	@scripts/deps.sh go generate
	@scripts/check-generate.sh

bench: ## Net nanoseconds per packet of the programs; AGAINST=COMMIT or test binary: beside that build; FLAGS='-rows REGEXP -passes N -json FILE'
	@scripts/deps.sh go bpffs
ifneq ($(AGAINST),)
	@AS_ROOT=$(AS_ROOT) scripts/bench.sh '$(AGAINST)' $(FLAGS)
else
	go test ./datapath -count=1 -exec $(AS_ROOT) -run '^$$' -bench 'Programs|Steer|Telemetry' -benchtime 1x $(if $(FLAGS),-args $(FLAGS))
	@$(MAKE) --no-print-directory $(if $(FLAGS),,bench-forwarding) bench-paths
endif

bench-forwarding: ## Packets per second from a sender through edge, host or kernel to a receiver; FLAGS as of bench; VM=bookworm: in that virtual machine, with IPVS and virtio
ifneq ($(VM),)
	@scripts/deps.sh go vm
	@$(AS_ROOT) env VM_TESTS=forwarding VM_CABLES=1 VM_COUNT=1 VM_FLAGS="$(FLAGS)" scripts/vm/test.sh $(VM)
else
	@scripts/deps.sh go bpffs
	go test ./datapath -count=1 -exec '$(AS_ROOT) chrt -r 10' -run '^$$' -bench Forwarding -benchtime 1x $(if $(FLAGS),-args $(FLAGS))
endif

bench-paths: ## Time and memory of the path engine, its proofs, and a library beside it
	@scripts/deps.sh go
	go test ./te/segment ./te/segment/proof -count=1 -run '^$$' -bench .

bench-kube: kube-programs ## Kubernetes: time and memory of 10,000 Services, requests to pods beside the direct way; RUN=Direct: one
	cd controller/kubernetes && go test ./e2e -count=1 -timeout 60m -exec '$(AS_ROOT)' -run '^$$' -bench '$(or $(RUN),.)' -benchtime 1x

deb: LDFLAGS := -s -w
deb: build ## A Debian package in dist/, checked by lintian
	@scripts/deps.sh go deb
	@scripts/deb.sh "$(DEB_VERSION)" dist
	@lintian $(LINTIAN) dist/sextant_$(DEB_VERSION)_*.deb

release: export LDFLAGS := -s -w -buildid= -X main.version=$(VERSION) $(if $(REVISION),-X sextant/agent/monitoring.revision=$(REVISION))
release: ## Files of a release in dist/: .deb, RPM, archive and OCI image for amd64 and arm64, SBOMs, checksums; KEY=ID signs by gpg
	@scripts/deps.sh go deb
	@scripts/release.sh "$(VERSION)" "$(DEB_VERSION)" dist $(KEY)

test-deb: ## Packages: contents, life on machines with systemd, the guide's commands, and the same bytes when built twice; about 15 minutes
	@scripts/deps.sh go test deb machines bpffs
	@scripts/test-deb.sh

fuzz: ## Each fuzz target for a short time (FUZZTIME=10s), with coverage guidance
	@scripts/deps.sh go bpffs
	@scripts/fuzz.sh

site: build ## The documentation as static pages with a search, in dist/site; links are checked
	@scripts/deps.sh site
	@scripts/site.sh ./sextant dist/site

figures: ## Draw docs/figures from their sources
	@scripts/deps.sh figures
	@scripts/figures.sh

fmt: ## Format Go and C
	@scripts/deps.sh go lint
	gofmt -w .
	find bpf -name '*.[ch]' -exec clang-format-19 -i {} +

clean: ## Remove what was built
	rm -rf sextant sextant-kubernetes bin dist results
