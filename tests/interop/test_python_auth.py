"""The official Python SDK's client logs in at our authorization server, uses tools, and refreshes."""

import html
import json
import os
import re
import socket
import subprocess
import tempfile
import unittest
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
from mcp import ClientSession
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata

GATEWRIGHT = os.environ["GATEWRIGHT"]
CALLBACK = "http://127.0.0.1:49153/callback"


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


class Server:
    """`gatewright serve` with the built-in authorization server; any user name passes its login."""

    def __enter__(self) -> "Server":
        port = free_port()
        self.issuer = f"http://127.0.0.1:{port}"
        auth = {
            "mode": "orchestrated",
            "type": "local",
            "tokenStorage": {"type": "memory"},
            "local": {"login": "demo"},
            "dcrEnabled": True,
            "scopes": {"crm:read": "Read the CRM"},
            "clients": [{"clientId": "python", "redirectUris": [CALLBACK]}],
        }
        config = {"http": {"port": port, "publicUrl": self.issuer}, "apps": {"crm": {"builtin": "crm"}}, "auth": auth}
        self.file = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump(config, self.file)
        self.file.flush()
        command = [GATEWRIGHT, "serve", "--config", self.file.name]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "serving MCP" in line:
                return self
        raise RuntimeError("gatewright serve ended before it served")

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait(15)
        self.process.stderr.close()
        self.file.close()


class Person:
    """Follows redirects, fills the login and consent forms; what the SDK asks its host for."""

    def __init__(self, known: OAuthClientInformationFull | None = None) -> None:
        self.tokens = None
        self.known = known
        self.asked = 0

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens) -> None:
        self.tokens = tokens

    async def get_client_info(self):
        return self.known

    async def set_client_info(self, known) -> None:
        self.known = known

    async def open(self, url: str) -> None:
        self.asked += 1
        async with httpx2.AsyncClient(follow_redirects=False) as browser:
            answer = await browser.get(url)
            for _ in range(12):
                target = answer.headers.get("location")
                if target:
                    target = urljoin(url, target)
                    if target.startswith(CALLBACK):
                        query = parse_qs(urlsplit(target).query)
                        self.answer = {name: values[0] for name, values in query.items()}
                        return
                    answer = await browser.get(target)
                    continue
                if answer.status_code != 200:
                    raise RuntimeError(f"the server answers {answer.status_code}: {answer.text}")
                action, fields = form(answer.text)
                origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
                answer = await browser.post(urljoin(url, action), data=fields, headers={"origin": origin})
        raise RuntimeError("the browser was sent around twelve times")

    async def called_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self.answer["code"], state=self.answer["state"], iss=self.answer.get("iss"))


def form(page: str) -> tuple[str, dict[str, list[str]]]:
    action = html.unescape(re.search(r'<form[^>]*action="([^"]*)"', page).group(1))
    fields: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", page):
        attributes = {name: html.unescape(value) for name, value in re.findall(r'([a-z_-]+)="([^"]*)"', tag)}
        value = "ada" if attributes["name"] == "username" else attributes.get("value", "")
        fields.setdefault(attributes["name"], []).append(value)
    if 'name="decision"' in page:
        fields["decision"] = ["allow"]
    return action, fields


class PythonAuth(unittest.IsolatedAsyncioTestCase):
    async def logs_in(self, server: Server, person: Person) -> None:
        metadata = OAuthClientMetadata(
            client_name="Python SDK",
            redirect_uris=[CALLBACK],
            grant_types=["authorization_code", "refresh_token"],
            token_endpoint_auth_method="none",
        )

        async def use() -> None:
            provider = OAuthClientProvider(
                server_url=f"{server.issuer}/mcp",
                client_metadata=metadata,
                storage=person,
                redirect_handler=person.open,
                callback_handler=person.called_back,
            )
            client = httpx2.AsyncClient(auth=provider, timeout=30)
            async with (
                client,
                streamable_http_client(f"{server.issuer}/mcp", http_client=client) as streams,
                ClientSession(streams[0], streams[1]) as session,
            ):
                await session.initialize()
                script = "return (await callTool('crm:users_list', { limit: 2 })).items.length"
                result = await session.call_tool("codecall:execute", {"script": script})
                body = getattr(result, "structured_content", None) or result.structuredContent
                self.assertEqual((body["status"], body["result"]), ("ok", 2))

        await use()
        self.assertEqual(person.asked, 1)
        # The tokens are kept: nobody is asked again.
        await use()
        self.assertEqual(person.asked, 1)

    async def test_registers_itself_and_logs_in(self) -> None:
        with Server() as server:
            person = Person()
            await self.logs_in(server, person)
            self.assertTrue(person.known.client_id)

    async def test_logs_in_as_a_client_known_beforehand(self) -> None:
        known = OAuthClientInformationFull(client_id="python", redirect_uris=[CALLBACK], token_endpoint_auth_method="none")
        with Server() as server:
            await self.logs_in(server, Person(known))


if __name__ == "__main__":
    unittest.main()
