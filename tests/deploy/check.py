"""What is deployed, checked by the tools of its own kind, and against the binary it starts.

Each function is one check and says what holds; the first line of a failure is its name.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
import urllib.request

import alarms
import first_minutes
import helm_python as helm
import kubernetes_validate
import packages
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ["GATEWRIGHT"]
TOOLS = pathlib.Path(sys.executable).parent
CHART = ROOT / "deploy/helm/gatewright"
KUBERNETES = "1.34"
SEVERITY = {
    "GatewrightAuthFailures": "warning",
    "GatewrightTokenRefreshRate": "warning",
    "GatewrightKeySetErrors": "warning",
    "GatewrightStoreErrors": "critical",
    "GatewrightSlowTokens": "warning",
}

EVERYTHING = {
    "replicaCount": 3,
    "secrets": {"BILLING_TOKEN": "not a secret", "ADMIN_TOKEN": "a-token-of-operators"},
    "existingSecret": "more",
    "restartOnConfigChange": True,
    "ingress": {"enabled": True, "className": "nginx", "host": "mcp.example.com", "tlsSecret": "cert"},
    "autoscaling": {"enabled": True},
    "networkPolicy": {
        "from": [{"namespaceSelector": {"matchLabels": {"team": "agents"}}}],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"protocol": "TCP", "port": 6379}]}],
    },
    "config": {
        "http": {"cluster": {"key": "${CLUSTER_KEY}", "redis": "redis://redis:6379"}},
        "admin": {"host": "0.0.0.0", "token": "${ADMIN_TOKEN}"},
        "audit": {"file": "/var/lib/gatewright/audit-${POD_NAME}.jsonl"},
    },
    "metrics": {
        "from": [{"namespaceSelector": {"matchLabels": {"team": "operators"}}}],
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    },
    "extraEnv": [{"name": "TZ", "value": "UTC"}],
    "extraVolumes": [{"name": "state", "persistentVolumeClaim": {"claimName": "audit"}}],
    "extraVolumeMounts": [{"name": "state", "mountPath": "/var/lib/gatewright"}],
    "podAnnotations": {"a": "b"},
    "podLabels": {"c": "d"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "x", "operator": "Exists"}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
}


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def parses(arguments):
    """The binary's command line takes `arguments`: with --help at the end it parses them and does nothing."""
    run(BINARY, *arguments, "--help")


# Of some password; nobody signs in with it.
HASH = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$3PFEtvQAtzrZ0RGCHIvV3zNqYw5pKbuTtP2KFDWD0kE"


def is_good_config(text):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "gatewright.yaml")
        file.write_text(text)
        run(BINARY, "check", "--config", file, env={**os.environ, "BILLING_TOKEN": "x", "GATEWRIGHT_HOST": "x", "CLUSTER_KEY": "5e" * 32, "POD_NAME": "x", "ADMIN_TOKEN": "x" * 16, "ADMIN_PASSWORD_HASH": HASH})


def rendered(values):
    with helm.Chart.load(str(CHART)) as chart:
        chart.validate_schema(chart.merge_values(values))
        files = chart.render(values, name="demo", namespace="prod")
    documents = [yaml.safe_load(text) for name, text in files.items() if name.endswith(".yaml")]
    manifests = {}
    for document in filter(None, documents):
        component = document["metadata"].get("labels", {}).get("app.kubernetes.io/component", "")
        kind = f"{component} {document['kind']}".strip()
        assert kind not in manifests, kind
        manifests[kind] = document
    return manifests


def the_chart_passes_helms_own_linter():
    findings = helm.lint(str(CHART))
    bad = [message for message in findings["messages"] if message["severity"] > 1]
    assert not bad and not findings["errors"], findings


def the_charts_icon_is_a_file_of_this_repository():
    icon = yaml.safe_load((CHART / "Chart.yaml").read_text())["icon"]
    path = re.fullmatch(r"https://raw\.githubusercontent\.com/[^/]+/[^/]+/main/(.+)", icon)
    assert path, f"{icon} does not name a file of the main branch"
    file = ROOT / path[1]
    assert file.read_text().startswith("<svg"), file


def every_manifest_fits_the_schemas_of_kubernetes():
    for values, kinds in [
        ({}, {"ConfigMap", "Deployment", "Service", "ServiceAccount", "NetworkPolicy"}),
        (
            EVERYTHING,
            {"ConfigMap", "Deployment", "Service", "ServiceAccount", "NetworkPolicy"}
            | {"Secret", "Ingress", "HorizontalPodAutoscaler", "PodDisruptionBudget", "admin Service", "ServiceMonitor"},
        ),
    ]:
        manifests = rendered(values)
        assert set(manifests) == kinds, set(manifests)
        # Prometheus' operator brings the schema of its own kind; what is in it is looked at below.
        for manifest in (manifest for kind, manifest in manifests.items() if kind != "ServiceMonitor"):
            kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def the_charts_pod_starts_with_a_command_line_and_a_configuration_that_the_binary_takes():
    for values in [{}, EVERYTHING]:
        manifests = rendered(values)
        pod = manifests["Deployment"]["spec"]["template"]["spec"]
        container = pod["containers"][0]
        parses(container["args"])
        probe = container["startupProbe"]["exec"]["command"]
        parses(probe[1:])
        is_good_config(manifests["ConfigMap"]["data"]["gatewright.yaml"])
        config = yaml.safe_load(manifests["ConfigMap"]["data"]["gatewright.yaml"])
        assert "demo-gatewright.prod.svc" in config["http"]["allowedHosts"]
        assert container["ports"][0]["containerPort"] == config["http"]["port"]
        # The server is not cut off while it drains.
        drain = int(config["http"]["drainTimeout"].removesuffix("s"))
        assert pod["terminationGracePeriodSeconds"] > drain + container["lifecycle"]["preStop"]["sleep"]["seconds"]
        labels = manifests["Deployment"]["spec"]["template"]["metadata"]["labels"]
        for selector in [
            manifests["Service"]["spec"]["selector"],
            manifests["Deployment"]["spec"]["selector"]["matchLabels"],
            manifests["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        ]:
            assert selector.items() <= labels.items(), (selector, labels)


def the_chart_runs_without_privileges_and_keeps_secrets_in_a_secret():
    manifests = rendered(EVERYTHING)
    pod = manifests["Deployment"]["spec"]["template"]["spec"]
    security = pod["containers"][0]["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert security["readOnlyRootFilesystem"] is True and security["allowPrivilegeEscalation"] is False
    assert security["capabilities"] == {"drop": ["ALL"]}
    others = {kind: manifest for kind, manifest in manifests.items() if kind != "Secret"}
    assert "not a secret" not in json.dumps(others)


def the_admin_listener_is_reached_by_its_own_service_by_those_who_may_and_only_when_it_is_on():
    for admin in [None, {}, {"host": "127.0.0.1"}]:
        manifests = rendered({"config": {"admin": admin}} if admin is not None else {})
        assert "admin Service" not in manifests and "9464" not in json.dumps(manifests), admin
    manifests = rendered(EVERYTHING)
    container = manifests["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "admin", "containerPort": 9464} in container["ports"]
    service = manifests["admin Service"]
    assert service["spec"]["ports"] == [{"name": "admin", "port": 9464, "targetPort": "admin"}]
    assert [port["name"] for port in manifests["Service"]["spec"]["ports"]] == ["http"]
    (rule,) = [rule for rule in manifests["NetworkPolicy"]["spec"]["ingress"] if rule["ports"][0]["port"] == "admin"]
    assert rule["from"] == EVERYTHING["metrics"]["from"]
    monitor = manifests["ServiceMonitor"]
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1" and monitor["metadata"]["labels"]["release"] == "prometheus"
    # It finds the admin service and not the public one, and shows a token that the pod is given too.
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= service["metadata"]["labels"].items()
    assert not wanted <= manifests["Service"]["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["endpoints"]
    credentials = endpoint.pop("authorization")["credentials"]
    assert endpoint == {"port": "admin", "path": "/metrics", "interval": "30s"}
    assert credentials["name"] == manifests["Secret"]["metadata"]["name"]
    assert credentials["key"] in manifests["Secret"]["stringData"]
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"/etc/gatewright", "/tmp", "/var/lib/gatewright"}
    try:
        rendered({"metrics": {"serviceMonitor": {"enabled": True}}})
    except helm.HelmError as error:
        assert "config.admin" in str(error), error
    else:
        raise AssertionError("a monitor of nothing is made")


def the_sample_app_and_its_openness_are_gone_with_the_first_app_of_ones_own():
    sample = yaml.safe_load(rendered({})["ConfigMap"]["data"]["gatewright.yaml"])
    assert list(sample["apps"]) == ["crm"] and sample["auth"]["allowDefaultPublic"] is True
    own = {"config": {"apps": {"billing": {"url": "https://billing.internal/mcp"}}}}
    config = yaml.safe_load(rendered(own)["ConfigMap"]["data"]["gatewright.yaml"])
    assert list(config["apps"]) == ["billing"] and "auth" not in config, config


def the_values_schema_refuses_what_cannot_work():
    for values in [
        {"replicaCount": 0},
        {"replicas": 2},
        {"config": {"http": {"port": "3000"}}},
        {"config": {"http": {"port": 70000}}},
        {"image": {"repository": ""}},
        {"log": {"level": "loud"}},
        {"secrets": {"NOT-A-NAME": "x"}},
        {"secrets": {"NUMBER": 1}},
        {"service": {"type": "Headless"}},
        {"autoscaling": {"cpuUtilization": 0}},
    ]:
        try:
            rendered(values)
        except helm.HelmError:
            continue
        raise AssertionError(f"taken: {values}")


def the_dockerfile_passes_its_linter_and_starts_what_there_is():
    run(TOOLS / "hadolint", "Dockerfile")
    text = (ROOT / "Dockerfile").read_text()
    for source in re.findall(r"^COPY (?!--from)(\S+) \S+$", text, re.M):
        assert (ROOT / source).exists(), source
    entry, command = (json.loads(re.search(rf"^{name} (\[.*\])$", text, re.M)[1]) for name in ("ENTRYPOINT", "CMD"))
    health = json.loads(re.search(r"HEALTHCHECK (?:.*\\\n)+\s+CMD (\[.*\])$", text, re.M)[1])
    assert entry == [health[0]]
    parses(command)
    parses(health[1:])
    assert re.search(r"^USER 65532:65532$", text, re.M)
    is_good_config((ROOT / "deploy/docker/gatewright.yaml").read_text())


def the_compose_file_fits_its_schema():
    run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", "deploy/compose.yaml")
    services = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())["services"]
    assert {"gatewright", "redis", "caddy"} == set(services)
    (mounted,) = services["gatewright"]["volumes"]
    folder = ROOT / "deploy" / mounted.split(":")[0]
    text = (folder / "gatewright.yaml").read_text()
    is_good_config(text)
    # Each variable that the file names without a default is set, and Redis is used.
    environment = services["gatewright"]["environment"]
    for name in re.findall(r"\$\{(\w+)", text):
        assert name in environment, name
    assert yaml.safe_load(text)["auth"]["tokenStorage"]["type"] == "redis"


def the_unit_is_valid_and_hardened():
    text = (ROOT / "deploy/systemd/gatewright.service").read_text()
    for line in re.findall(r"^ExecStart(?:Pre)?=/usr/bin/gatewright (.*)$", text, re.M):
        parses(shlex.split(line))
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder, "gatewright.service")
        # The binary is not installed here; any other would do.
        unit.write_text(text.replace("/usr/bin/gatewright", BINARY))
        said = run("systemd-analyze", "verify", "--man=no", unit, env={**os.environ, "SYSTEMD_LOG_LEVEL": "warning"})
        assert not said, said
        # 0 is locked, 10 open; what is left is the network and the memory of just-in-time compilers.
        run("systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
    calls = run("systemd-analyze", "syscall-filter", "@system-service")
    own = re.search(r"^SystemCallFilter=(landlock.*)$", text, re.M)[1].split()
    for call in ["landlock_create_ruleset", "landlock_restrict_self", "seccomp", "close_range"]:
        assert call in own or call in calls.split(), f"a worker needs {call}"


def the_debian_package_holds_all_its_parts():
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder, "gatewright")
        run("strip", "-o", stripped, BINARY)
        run("scripts/package-deb", "--binary", stripped, "--output", folder)
        (package,) = pathlib.Path(folder).glob("*.deb")
        tree = pathlib.Path(folder, "tree")
        run("dpkg-deb", "-R", package, tree)
        for part in [
            "usr/bin/gatewright",
            "usr/share/man/man1/gatewright.1.gz",
            "usr/share/man/man1/gatewright-serve.1.gz",
            "usr/share/bash-completion/completions/gatewright",
            "usr/share/zsh/vendor-completions/_gatewright",
            "usr/share/fish/vendor_completions.d/gatewright.fish",
            "usr/share/doc/gatewright/copyright",
            "usr/share/doc/gatewright/LICENSE-MIT",
        ]:
            assert (tree / part).is_file(), part
        # Below /lib or /usr/lib, as the version of debhelper has it.
        (unit,) = [path.read_text() for path in tree.glob("**/systemd/system/gatewright.service")]
        assert unit == (ROOT / "deploy/systemd/gatewright.service").read_text()
        assert run(tree / "usr/bin/gatewright", "--version").startswith("gatewright ")
        is_good_config((tree / "usr/share/doc/gatewright/examples/gatewright.yaml").read_text())
        control = (tree / "DEBIAN/control").read_text()
        assert "Depends: libc6" in control, control
        for script in ["postinst", "prerm", "postrm"]:
            run("sh", "-n", tree / "DEBIAN" / script)
        # Nothing is started before there is a configuration; an upgrade restarts what runs.
        assert "systemctl enable" not in (tree / "DEBIAN/postinst").read_text()
        run("bash", "-n", tree / "usr/share/bash-completion/completions/gatewright")
        for page in sorted((tree / "usr/share/man/man1").iterdir()):
            done = subprocess.run(["man", "--warnings", "-l", str(page)], capture_output=True, text=True, env={**os.environ, "MANPAGER": "cat"})
            assert done.returncode == 0 and "GATEWRIGHT" in done.stdout.upper(), f"{page}: {done.stderr}"


def the_alerts_fire_above_their_thresholds_and_not_below():
    run("promtool", "check", "rules", "--lint-fatal", "deploy/prometheus-rules.yaml")
    run("promtool", "test", "rules", "tests/deploy/alerts.yaml")


def each_alert_fires_on_what_a_server_in_its_trouble_exports_and_no_other_does():
    # RefreshRate compares with the day before: ten refreshes a minute, as after a quiet day.
    quiet = 24 * 60
    for alert, (before, after) in alarms.troubles().items():
        assert set(before) == set(after)
        # Scraped each minute: as it was, then as it became.
        series = [
            {"series": f'{name}{{job="gatewright"}}', "values": f"{value}x{quiet} {after[name]}x20"}
            for name, value in before.items()
            if name.startswith("gatewright_")
        ]
        fires = {"labels": f'ALERTS{{alertname="{alert}", alertstate="firing", job="gatewright", severity="{SEVERITY[alert]}"}}', "value": 1}
        test = {
            "interval": "1m",
            "input_series": series,
            "promql_expr_test": [
                {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{quiet - 1}m", "exp_samples": []},
                {"expr": 'ALERTS{alertstate="firing"}', "eval_time": f"{quiet + 4}m", "exp_samples": [fires]},
            ],
        }
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            rules = str(ROOT / "deploy/prometheus-rules.yaml")
            yaml.safe_dump({"rule_files": [rules], "evaluation_interval": "1m", "tests": [test]}, file)
            file.flush()
            run("promtool", "test", "rules", file.name)


def exported():
    """The names of all metrics of a server with authentication."""
    config = "apps:\n  crm: { builtin: crm }\nadmin: { port: 0 }\nauth: { mode: orchestrated }\n"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "gatewright.yaml")
        file.write_text(config)
        command = [BINARY, "serve", "--port", "0", "--config", str(file)]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            for line in server.stderr:
                found = re.search(r"for operators on (http://[0-9.:]+)", line)
                if found:
                    break
            with urllib.request.urlopen(found[1] + "/metrics", timeout=30) as answer:
                text = answer.read().decode()
            # Names, units, types and help as Prometheus wants them.
            run("promtool", "check", "metrics", input=text)
        finally:
            server.kill()
            server.wait()
    # What is counted by tool shows only once a tool was called: those names are read where they are registered.
    registered = "".join((ROOT / f"crates/operator/src/telemetry/{name}.rs").read_text() for name in ("metrics", "http"))
    return set(re.findall(r"^# TYPE (\w+)", text, re.M)) | set(re.findall(r'"((?:mcp|gatewright)_\w+)"', registered))


def every_metric_that_alerts_and_the_dashboard_name_is_exported():
    dashboard = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"]) == 18
    for query in queries:
        plain = query.replace("$job", "gatewright")
        assert "$" not in plain, query
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as rules:
            yaml.safe_dump({"groups": [{"name": "x", "rules": [{"record": "x", "expr": plain}]}]}, rules)
            rules.flush()
            run("promtool", "check", "rules", rules.name)
    rules = yaml.safe_load((ROOT / "deploy/prometheus-rules.yaml").read_text())
    queries += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    known = exported()
    for query in queries:
        for name in re.findall(r"\b(?:mcp|gatewright|process)_[a-z0-9_]+", query):
            base = re.sub(r"_(bucket|count|sum)$", "", name)
            assert name in known or base in known, f"{name} in {query}"


def failure(check):
    """What went wrong, or nothing."""
    try:
        check()
        return None
    except Exception:
        return traceback.format_exc()


def main():
    everything = globals() | vars(packages) | vars(first_minutes)
    checks = [value for name, value in everything.items() if callable(value) and re.match(r"(the|every|each)_", name)]
    failed = 0
    # Most of a check is another process.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for check, wrong in zip(checks, pool.map(failure, checks)):
            name = check.__name__.replace("_", " ")
            print(f"FAIL {name}\n{wrong}" if wrong else f"ok   {name}", flush=True)
            failed += bool(wrong)
    print(f"{len(checks) - failed} of {len(checks)} hold; not run here: the image (no container engine) and a cluster")
    sys.exit(failed != 0)


main()
