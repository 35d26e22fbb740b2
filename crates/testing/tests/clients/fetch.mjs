// Calls a URL the way `HOW` says and prints what came: status, then body.
import http from "node:http";
import https from "node:https";

const [how, url, body] = process.argv.slice(2);
if (how === "fetch") {
  const init = body ? { method: "POST", body, headers: { "content-type": "application/json" } } : {};
  const response = await fetch(url, init);
  console.log(response.status, await response.text());
} else {
  const { get } = url.startsWith("https") ? https : http;
  get(url, (response) => {
    let text = "";
    response.on("data", (data) => (text += data));
    response.on("end", () => console.log(response.statusCode, text));
  });
}
