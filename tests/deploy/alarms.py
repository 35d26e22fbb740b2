"""Brings servers into the trouble that each alert is for, and gives what they export before and after."""

import base64
import html
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

BINARY = os.environ["GATEWRIGHT"]
CLIENT = "Basic " + base64.b64encode(b"svc:a-secret-of-the-service-1234").decode()


def unverified(issuer):
    """A token of the issuer in which everything is right but the signature."""
    parts = [
        {"alg": "RS256", "kid": "a", "typ": "at+jwt"},
        {"iss": issuer, "aud": "api", "sub": "ada", "iat": 1_700_000_000, "exp": 4_000_000_000},
    ]
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return f"Bearer {'.'.join(encoded)}.AAAA"


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


OPENER = urllib.request.build_opener(Stay, urllib.request.HTTPCookieProcessor())


def send(url, form=None, headers=()):
    """Status, headers and text of an answer, whatever it is."""
    body = urllib.parse.urlencode(form).encode() if form is not None else None
    request = urllib.request.Request(url, body, dict(headers))
    try:
        with OPENER.open(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers, answer.read().decode()


class Held:
    """A process and its folder, until the end of the block."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()


class Server(Held):
    """`gatewright serve` with this configuration, and its admin listener."""

    def __init__(self, config, **environment):
        self.folder = tempfile.TemporaryDirectory()
        file = pathlib.Path(self.folder.name, "gatewright.json")
        config = {"apps": {"crm": {"builtin": "crm"}}, "admin": {"port": 0, "console": False}, **config}
        file.write_text(json.dumps(config))
        command = [BINARY, "serve", "--port", str(config["http"]["port"]), "--config", str(file)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
        self.url = f"http://127.0.0.1:{config['http']['port']}"
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"for operators on (http://[0-9.:]+)", line):
                self.admin = found[1]
                break
        else:
            raise AssertionError("".join(said))
        # Nobody reads on: a full pipe would stop the server.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def scrape(self):
        """Every series without labels, by its name."""
        text = send(f"{self.admin}/metrics")[2]
        return dict(re.findall(r"^(\w+) (\S+)$", text, re.M))

    def token(self, **form):
        return send(f"{self.url}/oauth/token", form, {"authorization": CLIENT})


class Redis(Held):
    def __init__(self):
        self.port, self.folder = free_port(), tempfile.TemporaryDirectory()
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self.folder.name]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                assert time.monotonic() < deadline, "redis-server does not listen"

    def pause(self, milliseconds):
        """Answers nobody for so long."""
        with socket.create_connection(("127.0.0.1", self.port)) as line:
            line.sendall(f"CLIENT PAUSE {milliseconds} ALL\r\n".encode())
            assert line.recv(64) == b"+OK\r\n"


def logged_in(server):
    """A refresh token of somebody who logged in and consented in a browser."""
    back = "http://127.0.0.1:1/callback"
    asked = {"response_type": "code", "client_id": "app", "redirect_uri": back, "scope": "crm:read offline_access", "state": "s"}
    asked |= {"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"}
    status, headers, text = send(f"{server.url}/oauth/authorize?{urllib.parse.urlencode(asked)}")
    for _ in range(8):
        if status in (302, 303):
            where = urllib.parse.urljoin(server.url, headers["location"])
            if where.startswith(back):
                break
            status, headers, text = send(where)
            continue
        action = html.unescape(re.search(r'<form[^>]* action="([^"]+)"', text)[1])
        fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', text))
        fields = {name: html.unescape(value) for name, value in fields.items()}
        fields |= {"username": "ada", "decision": "allow", "grant_scope": "crm:read"}
        origin = {"origin": server.url, "sec-fetch-site": "same-origin"}
        status, headers, text = send(urllib.parse.urljoin(server.url, action), fields, origin)
    else:
        raise AssertionError(f"no way through: {status} {text}")
    code = urllib.parse.parse_qs(urllib.parse.urlsplit(where).query)["code"][0]
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back, "client_id": "app"}
    form["code_verifier"] = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    return json.loads(send(f"{server.url}/oauth/token", form)[2])["refresh_token"]


def troubles():
    """For each alert, what a server in its trouble exported before and after it."""
    with Redis() as redis:
        port = free_port()
        auth = {
            "mode": "orchestrated",
            "local": {"login": "demo"},
            "scopes": {"crm:read": "Read"},
            "clients": [
                {"clientId": "svc", "clientSecret": "a-secret-of-the-service-1234", "grantTypes": ["client_credentials"]},
                {"clientId": "app", "redirectUris": ["http://127.0.0.1:1/callback"]},
            ],
            "limits": {"token": 100_000},
            "tokenStorage": {"type": "redis", "config": {"host": "127.0.0.1", "port": redis.port}},
        }
        with Server({"http": {"port": port, "publicUrl": f"http://127.0.0.1:{port}"}, "auth": auth}) as server:
            found = {}

            def during(alert, work):
                before = server.scrape()
                work()
                found[alert] = (before, server.scrape())

            def guesses():
                for _ in range(700):
                    send(f"{server.url}/mcp", {}, {"authorization": "Bearer guessed"})

            def refreshes():
                for _ in range(450):
                    form = {"grant_type": "refresh_token", "refresh_token": held[-1], "client_id": "app"}
                    held.append(json.loads(send(f"{server.url}/oauth/token", form)[2])["refresh_token"])

            def slow():
                for _ in range(2):
                    redis.pause(900)
                    status, _, text = server.token(grant_type="client_credentials", scope="crm:read")
                    assert status == 200, text

            def lost():
                redis.process.kill()
                redis.process.wait()
                status, headers, _ = server.token(grant_type="client_credentials", scope="crm:read")
                assert status == 503 and int(headers["retry-after"]) > 0, status

            held = [logged_in(server)]
            during("GatewrightAuthFailures", guesses)
            during("GatewrightTokenRefreshRate", refreshes)
            during("GatewrightSlowTokens", slow)
            during("GatewrightStoreErrors", lost)
    auth = {"mode": "transparent", "expectedAudience": "api", "provider": {"allowPrivate": True}}
    issuer = f"http://127.0.0.1:{free_port()}"
    with Server({"http": {"port": free_port()}, "auth": auth}, IDP_PROVIDER_URL=issuer) as server:
        before = server.scrape()
        status, headers, _ = send(f"{server.url}/mcp", {}, {"authorization": unverified(issuer)})
        assert status == 503 and int(headers["retry-after"]) > 0, status
        found["GatewrightKeySetErrors"] = (before, server.scrape())
    return found
