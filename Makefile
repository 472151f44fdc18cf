# Each target works in a fresh clone; the virtual environment lands in .venv.
PYTHON ?= python3
PY     := .venv/bin/python
MADE   := .venv/.made-from-$(shell cat pyproject.toml requirements-dev.txt | cksum | cut -d' ' -f1)

# The tests of what decides, in two halves that take about as long. Coverage makes Python two to
# three times slower: properties and large tables, which add no line to it, run without.
DECIDING := tests/evaluation tests/rules
KNOWING  := tests/kube tests/core tests/capacity
PURE     := $(DECIDING) $(KNOWING)
COVERED  := $(PY) -m coverage run --parallel-mode -m pytest -q -m "not hypothesis and not large"

# The program that makes the site lives beside the environment: 138 MB that nothing else needs.
SITE := .venv/site/.made-from-$(shell cksum < requirements-docs.txt | cut -d' ' -f1)

# A file stays in one process, with the server and whatever else its tests share. Two processes for
# each core, since many tests wait.
PARALLEL := -n $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN)) --dist loadfile --no-loadscope-reorder

# Hundreds of processes import the same modules: without bytecode each of them compiles them anew.
unexport PYTHONDONTWRITEBYTECODE

# 20 examples of each property: in CI always the same, elsewhere new ones (tests/conftest.py).
export HYPOTHESIS_PROFILE ?= $(if $(CI),ci,dev)

LOCK := .venv/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

.PHONY: dev demo demo-cluster test unit programs newest browser promtool test-cluster nightly cluster node test-node operators lint fix docs site manifests bench lock image plugin

dev: $(MADE)  ## make or refresh .venv, with all extras

$(MADE): pyproject.toml requirements-dev.txt
	@$(PYTHON) -m venv .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@rm -f .venv/.made-from-* && touch $@

demo: dev  ## the pods of old guides through a real server: what changes (POD=file shows another one)
	@$(PY) examples/demo.py $(POD)

demo-cluster: dev cluster  ## the same, judged by a real API server and scheduler
	@$(PY) -m examples.demo_cluster

test: unit programs newest test-cluster  ## everything but the real nodes

unit: dev  ## what runs in one process; core and rules with coverage
	@$(PY) -m coverage erase
	@$(COVERED) $(DECIDING) & deciding=$$!; $(COVERED) $(KNOWING) & knowing=$$!; \
	$(PY) -m pytest -q -m "hypothesis or large" $(PURE); properties=$$?; \
	wait $$deciding && wait $$knowing && exit $$properties
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage report
	@$(PY) -m pytest -q $(PARALLEL) -m "not programs" $(PURE:%=--ignore %) --ignore tests/cluster --ignore tests/node

programs: dev browser promtool site  ## what starts servers, commands, a browser, or counts work
	@$(PY) -m pytest -q $(PARALLEL) -m programs --ignore tests/cluster --ignore tests/node

newest: dev browser promtool site  ## both again on the newest Python of this machine (the image has 3.13)
	@$(PY) tests/newest_python.py

browser: dev  ## a headless Chromium for the tests of the HTML report, if there is none
	@$(PY) -m tests.reports.browser

promtool: dev  ## Prometheus' own tool for the tests of alerts, if there is none
	@$(PY) -m tests.monitoring.promtool

test-cluster: dev cluster  ## what the real control plane says; three at a time, since many tests wait
	@$(PY) -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder -m cluster tests/cluster

node: dev cluster  ## build what real nodes need: kubelet, containerd, our image; once, as root
	@$(PY) -m tests.node.build

test-node: dev cluster  ## what runs on real nodes: manifests/base and the chart as they are, and the guides' pods
	@$(PY) -m tests.node.build || { test $$? = 3 && test -z "$$CI"; } # no nodes here: skipped elsewhere than in CI
	@$(PY) -m pytest -q -s -rs -m "node and not operators" tests/node

operators: dev  ## build cert-manager, Flux and Argo CD, which only `make nightly` runs; once
	@$(PY) -m tests.node.operators

nightly: dev cluster browser site  ## hours: 5,000 new examples of each property, all rows of all tables, 100,000 changed members and as many changed reviews, 10,000 new pods for the scheduler, 2,000 charts, 10 minutes of rotations, 10 rolling restarts, cert-manager, Flux and Argo CD
	@HYPOTHESIS_PROFILE=nightly CHANGED_MEMBERS=100000 MUTATED_REVIEWS=100000 $(PY) -m pytest -q -n auto --dist worksteal --timeout 7200 -m "(hypothesis or nightly or pairs or large) and not cluster and not node"
	@NEVER_FITS_PODS=10000 NEVER_FITS_SEED=$$(date +%Y%m%d) $(PY) -m pytest -q -m cluster tests/cluster/test_never_fits.py
	@DRAWN_CHARTS=2000 $(PY) -m pytest -q --timeout 1800 -m cluster tests/cluster/test_drawn_charts.py
	@ROTATION_SECONDS=600 ROTATION_RATE=100 $(PY) -m pytest -q --timeout 1800 -m cluster tests/cluster/test_certificates_self.py
	@$(PY) -m tests.node.build || test $$? = 3 # no nodes here: skipped
	@RESTARTS=10 RESTARTS_RATE=200 $(PY) -m pytest -q -s -rs --timeout 1800 -m node tests/node/test_restarts.py
	@$(PY) -m tests.node.operators || test $$? = 3 # as above
	@$(PY) -m pytest -q -s -rs --timeout 1800 -m operators tests/node

cluster: dev  ## build etcd, kube-apiserver, scheduler, controllers and kubectl, once
	@$(PY) tests/cluster/build.py $(KUBERNETES_VERSION)

lint: dev  ## style, types, and who may import whom
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/mypy
	@.venv/bin/lint-imports

fix: dev  ## fix what the linter can fix
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format

docs: dev  ## the pages that are generated
	@$(PY) -m tests.laws.rule_pages
	@$(PY) -m tests.laws.rooms_picture
	@$(PY) -m tests.cli.demo_picture
	@$(PY) -m tests.cli.settings_table
	@$(PY) -m tests.manifests.chart_files
	@.venv/bin/gpu-webhook config schema > docs/schema/settings.json

site: dev $(SITE)  ## docs/ and README.md as build/site, with all links checked
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=.venv/site $(PY) -m mkdocs build --quiet --strict

$(SITE): requirements-docs.txt
	@rm -rf .venv/site
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes --target .venv/site -r requirements-docs.txt
	@touch $@

manifests: dev cluster  ## manifests/install.yaml, by kubectl
	@$(PY) -m tests.cluster.install_yaml

bench: dev  ## side by side with a Go webhook and an in-process policy
	@$(PY) -m bench $(BENCH)

lock: dev  ## new versions of all dependencies, with hashes
	@$(PY) -m pip install --quiet --disable-pip-version-check --target .venv/lock uv
	@$(LOCK) --all-extras pyproject.toml --output-file requirements.txt
	@$(LOCK) --all-extras --group dev pyproject.toml --output-file requirements-dev.txt
	@$(LOCK) --group build --output-file requirements-build.txt
	@$(LOCK) --constraint requirements.txt --group release --output-file requirements-release.txt
	@$(LOCK) --group docs --output-file requirements-docs.txt

image:  ## the container image
	@docker build --tag gpu-admission-webhook:$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' webhook/__init__.py) .

plugin:  ## dist/kubectl-gpu_migrate: `kubectl gpu-migrate` as one program that needs no Python
	@$(PYTHON) -m venv .venv-plugin
	@.venv-plugin/bin/pip install --quiet --disable-pip-version-check --require-hashes \
	  -r requirements.txt -r requirements-build.txt -r requirements-release.txt
	@.venv-plugin/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation .
	@.venv-plugin/bin/pyinstaller --log-level ERROR --noconfirm --onefile --collect-all webhook \
	  --workpath .venv-plugin/work --specpath .venv-plugin .venv-plugin/bin/kubectl-gpu_migrate
