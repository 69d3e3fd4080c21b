# Shortcuts; ./demo, ./test and .ci/run do the work and need no make.
.PHONY: help demo test check ci format recordings clients clean

help:
	@echo "make demo     show switchyard at work"
	@echo "make test     run the tests"
	@echo "make check    format, lint, types, architecture"
	@echo "make format   rewrite the sources in the project's format"
	@echo "make clients  run real coding agents against the server (npm, PyPI)"
	@echo "make recordings   record again what the shipped policies replay"
	@echo "make ci       everything that CI runs"
	@echo "make clean    remove environment, caches and results"

demo:
	./demo

test:
	./test

check:
	.ci/run format lint types architecture

ci:
	.ci/run

format:
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

recordings:
	.venv/bin/python scripts/make_recordings.py

clients:
	.ci/run clients

clean:
	rm -rf .venv .cache .coverage .coverage.* htmlcov build dist
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
