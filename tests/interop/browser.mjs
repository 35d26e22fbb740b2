// A person with a browser: follows redirects, keeps cookies, fills forms.

/// A person with a browser.
export class Browser {
  #cookies = new Map();
  pages = [];

  async #fetch(url, init = {}) {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { ...init.headers, ...(cookie && { cookie }) };
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      const [pair] = line.split(";");
      const at = pair.indexOf("=");
      const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
      if (value) this.#cookies.set(name, value);
      else this.#cookies.delete(name);
    }
    return response;
  }

  /// Goes to an authorization request, logs in, allows everything; gives the address that the client is called back at.
  async authorize(request, { user = "ada", decision = "allow", stopAt } = {}) {
    const { origin } = new URL(request);
    return this.#walk(request, { user, decision, isEnd: (next) => (stopAt ? next.href.startsWith(stopAt) : next.origin !== origin) });
  }

  /// Opens a page, and logs in where it asks for that; gives its text.
  async open(url, { user = "ada" } = {}) {
    const response = await this.#fetch(url);
    if (response.ok) return response.text();
    if (!response.headers.has("location")) throw new Error(`the server answers ${response.status}`);
    await this.#walk(new URL(response.headers.get("location"), url), { user, isEnd: (next) => next.href === new URL(url).href });
    return (await this.#fetch(url)).text();
  }

  /// Sends a form of a page; gives the status.
  async post(url, fields) {
    const { origin } = new URL(url);
    const response = await this.#fetch(url, { method: "POST", body: new URLSearchParams(fields), headers: { origin } });
    await response.text();
    return response.status;
  }

  /// Follows redirects and fills in forms until it is sent to an end.
  async #walk(from, { user, decision, isEnd }) {
    const { origin } = new URL(from);
    let response = await this.#fetch(from);
    for (let step = 0; step < 12; step += 1) {
      const location = response.headers.get("location");
      if (location) {
        const next = new URL(location, origin);
        if (isEnd(next)) return next;
        response = await this.#fetch(next);
        continue;
      }
      const text = await response.text();
      this.pages.push(text);
      if (!response.ok) throw new Error(`the server answers ${response.status}: ${text.replace(/<style>.*?<\/style>/s, "")}`);
      const { action, fields } = form(text);
      const body = new URLSearchParams();
      for (const field of fields) {
        if (field.name === "username") body.append("username", user);
        else if (field.name === "decision") continue;
        else if (field.name) body.append(field.name, field.value ?? "");
      }
      if (text.includes('name="decision"')) body.append("decision", decision);
      const target = new URL(action, origin);
      response = await this.#fetch(target, { method: "POST", body, headers: { origin } });
    }
    throw new Error("the browser was sent around twelve times");
  }
}

const unescape = (text) =>
  text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&#39;", "'").replaceAll("&amp;", "&");

function attributes(tag) {
  const found = {};
  for (const [, name, value] of tag.matchAll(/([a-z_-]+)="([^"]*)"/g)) found[name] = unescape(value);
  return found;
}

function form(page) {
  const tag = page.match(/<form[^>]*>/)?.[0];
  if (!tag) throw new Error(`a page without a form: ${page}`);
  return { action: attributes(tag).action, fields: [...page.matchAll(/<input[^>]*>/g)].map(([input]) => attributes(input)) };
}
