# Each target works in a fresh clone; the virtual environment lands in .venv.
PYTHON ?= python3
VENV   := .venv/.made-from-$(shell cat pyproject.toml requirements-dev.txt 2>/dev/null | cksum | cut -d' ' -f1)

.PHONY: dev cluster

dev: $(VENV)

$(VENV): pyproject.toml requirements-dev.txt
	@$(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@rm -f .venv/.made-from-* && touch $@

# The control plane of the cluster tests, built once into a cache outside the checkout.
cluster: dev
	@.venv/bin/python tests/cluster/build.py
