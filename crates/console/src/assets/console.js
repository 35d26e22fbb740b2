// Live updates, filters that follow what is typed, and the script pad. Every page works without it.
"use strict";

const byId = (id) => document.getElementById(id);
const runs = byId("runs");
const apps = byId("apps");
const news = byId("news");

// Fragments come from our own server, which has escaped them.
const fragment = (html) => {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
};

const duration = (us) => {
  const ms = us / 1000;
  if (ms === 0) return "0 ms";
  return ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(2)} s`;
};

// All rows have one time scale: that of the longest.
const rescale = (list) => {
  const strips = [...list.querySelectorAll("svg.shared")];
  const most = Math.max(1, ...strips.map((strip) => Number(strip.dataset.total)));
  for (const strip of strips) strip.setAttribute("viewBox", `0 0 ${most} 10`);
  byId("scale")?.querySelectorAll("span").forEach((span, at) => (span.textContent = duration((most * at) / 2)));
};

let live;
const follow = () => {
  live?.close();
  const list = byId("runs");
  if (!list && !apps) return;
  let newest = Number(list?.dataset.newest ?? 0);
  let seen = 0;
  live = new EventSource(`/console/live${list && !apps ? location.search : ""}`);
  live.addEventListener("run", (event) => {
    if (!list || Number(event.lastEventId) <= newest) return;
    newest = Number(event.lastEventId);
    const row = fragment(event.data).firstElementChild;
    row.classList.add("new");
    list.prepend(row);
    while (list.children.length > Number(list.dataset.most)) list.lastElementChild.remove();
    rescale(list);
    byId("none")?.remove();
    seen += 1;
    if (news) news.textContent = `${seen} new since you opened this page.`;
  });
  live.addEventListener("apps", (event) => apps?.replaceChildren(fragment(event.data)));
  live.addEventListener("reload", () => location.reload());
};
if (runs || apps) follow();
addEventListener("pagehide", () => live?.close());

// A form with `data-live` fills the element of that id while somebody types.
for (const form of document.querySelectorAll("form[data-live]")) {
  let waiting;
  let asked = 0;
  const ask = async () => {
    const number = (asked += 1);
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    const address = `${form.getAttribute("action")}?${query}`;
    const answer = await fetch(address).catch(() => undefined);
    const text = await answer?.text();
    if (!answer?.ok || number !== asked) return;
    const found = new DOMParser().parseFromString(text, "text/html").getElementById(form.dataset.live);
    if (!found) return;
    byId(form.dataset.live).replaceChildren(...found.childNodes);
    history.replaceState(null, "", address);
    if (byId("runs") || runs) follow();
  };
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(ask, 150);
  });
}

// Every textarea's form is sent with Ctrl+Enter (Cmd+Enter on a Mac).
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches?.("textarea")) {
    event.target.form.requestSubmit();
  }
});

// The script pad: colours behind the text, and names of tools and parameters while somebody types.
const TOKENS = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\[\s\S])*`?)|\b(const|let|for|of|in|if|else|return|await|async|function|new|throw|try|catch|finally|while|do|break|continue|switch|case|default|typeof|true|false|null|undefined)\b|\b(callTool|getTool|codecallContext|console|__safe_parallel|progress)\b|\b(\d[\d_.]*)\b/g;
const KINDS = [, "comment", "text", "word", "own", "number"];

const pad = () => {
  const area = byId("script");
  const back = document.createElement("pre");
  back.className = "colours";
  back.ariaHidden = "true";
  const list = document.createElement("ul");
  list.className = "suggestions";
  list.id = "suggestions";
  list.role = "listbox";
  list.ariaLabel = "Completions";
  list.hidden = true;
  const help = document.createElement("pre");
  help.className = "declaration";
  help.tabIndex = 0;
  help.hidden = true;
  const said = document.createElement("p");
  said.className = "visually-hidden";
  said.role = "status";
  area.before(back);
  area.after(list, said);
  area.parentElement.after(help);
  area.parentElement.classList.add("coloured");
  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-controls", "suggestions");

  const colour = () => {
    const text = area.value;
    const parts = [];
    let end = 0;
    // Beyond this length colours would be slower than typing.
    if (text.length <= 40_000) {
      for (const match of text.matchAll(TOKENS)) {
        parts.push(text.slice(end, match.index));
        const part = document.createElement("span");
        part.className = `c-${KINDS[match.findIndex((group, at) => at > 0 && group !== undefined)]}`;
        part.textContent = match[0];
        parts.push(part);
        end = match.index + match[0].length;
      }
    }
    back.replaceChildren(...parts, `${text.slice(end)}\n`);
    scroll();
  };
  const scroll = () => {
    back.scrollTop = area.scrollTop;
    back.scrollLeft = area.scrollLeft;
  };

  let offers = [];
  let chosen = -1;
  let asked = 0;
  const known = new Map();
  const close = () => {
    list.hidden = true;
    offers = [];
    chosen = -1;
    area.removeAttribute("aria-activedescendant");
  };
  const choose = (at) => {
    chosen = (at + offers.length) % offers.length;
    [...list.children].forEach((item, number) => (item.ariaSelected = String(number === chosen)));
    area.setAttribute("aria-activedescendant", `offer${chosen}`);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  };
  const take = (at) => {
    const { from, insert, to } = offers[at];
    area.focus();
    area.setRangeText(insert, from, to, "end");
    close();
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const show = (found) => {
    offers = found;
    if (!offers.length) return close();
    list.replaceChildren(
      ...offers.map((offer, at) => {
        const item = document.createElement("li");
        item.id = `offer${at}`;
        item.role = "option";
        const name = document.createElement("code");
        name.textContent = offer.name;
        const about = document.createElement("span");
        about.className = "soft";
        about.textContent = ` ${offer.about}`;
        item.append(name, about);
        item.addEventListener("mousedown", (event) => {
          event.preventDefault();
          take(at);
        });
        return item;
      }),
    );
    const before = area.value.slice(0, offers[0].from).split("\n");
    const line = Number.parseFloat(getComputedStyle(area).lineHeight);
    list.style.setProperty("top", `${Math.min(before.length * line + 14 - area.scrollTop, area.clientHeight)}px`);
    list.hidden = false;
    choose(0);
    said.textContent = `${offers.length} completions`;
  };
  const fetched = async (query) => {
    const answer = await fetch(`/console/script/suggestions?${new URLSearchParams(query)}`).catch(() => undefined);
    return answer?.ok ? (await answer.json()).tools : [];
  };
  const tool = async (name) => {
    if (!known.has(name)) known.set(name, (await fetched({ tool: name }))[0]);
    return known.get(name);
  };
  const suggest = async () => {
    const number = (asked += 1);
    const at = area.selectionStart;
    const before = area.value.slice(Math.max(0, at - 2000), at);
    const naming = /\b(?:callTool|getTool)\(\s*(["'`])([^"'`\n]*)$/.exec(before);
    if (naming) {
      const found = await fetched({ q: naming[2] });
      if (number !== asked || area.selectionStart !== at) return;
      const rest = /^[^"'`\n]*/.exec(area.value.slice(at))[0].length;
      return show(found.map(({ name, about }) => ({ name, about, insert: name, from: at - naming[2].length, to: at + rest })));
    }
    const filling = /\bcallTool\(\s*(["'`])([^"'`\n]+)\1\s*,\s*\{([^{}]*?)([A-Za-z_$][\w$]*|)$/.exec(before);
    if (!filling) return close();
    const described = await tool(filling[2]);
    if (number !== asked || area.selectionStart !== at) return;
    if (!described) return close();
    if (described.declaration) {
      help.textContent = described.declaration;
      help.hidden = false;
    }
    if (!/(?:^|,)\s*$/.test(filling[3])) return close();
    const given = new Set([...filling[3].matchAll(/([\w$]+)\s*:/g)].map((match) => match[1]));
    const fitting = described.parameters.filter(({ name }) => !given.has(name) && name.startsWith(filling[4]));
    const plain = (name) => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));
    show(
      fitting.sort((a, b) => b.required - a.required).slice(0, 12).map(({ name, type, about, required }) => ({
        name,
        about: `${type}${required ? ", required" : ""}${about ? `: ${about}` : ""}`,
        insert: `${plain(name)}: `,
        from: at - filling[4].length,
        to: at,
      })),
    );
  };
  let waiting;
  area.addEventListener("input", () => {
    colour();
    clearTimeout(waiting);
    waiting = setTimeout(suggest, 80);
  });
  area.addEventListener("scroll", scroll);
  area.addEventListener("blur", close);
  area.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      suggest();
    }
    if (list.hidden) return;
    const act = { ArrowDown: () => choose(chosen + 1), ArrowUp: () => choose(chosen - 1), Enter: () => take(chosen), Escape: close }[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  new ResizeObserver(() => {
    back.style.setProperty("height", `${area.offsetHeight}px`);
  }).observe(area);
  colour();
};
if (byId("script")?.matches("textarea")) pad();

// After a form was sent, go on reading at its answer.
byId("result")?.focus();
