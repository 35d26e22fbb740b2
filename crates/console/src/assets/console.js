// Live updates and a key for the script pad. Every page works without it.
"use strict";

const runs = document.getElementById("runs");
const apps = document.getElementById("apps");
const news = document.getElementById("news");

// Fragments come from our own server, which has escaped them.
const fragment = (html) => {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
};

if (runs || apps) {
  let newest = Number(runs?.dataset.newest ?? 0);
  let seen = 0;
  const live = new EventSource("/console/live");
  live.addEventListener("run", (event) => {
    if (!runs || Number(event.lastEventId) <= newest) return;
    newest = Number(event.lastEventId);
    const row = fragment(event.data).firstElementChild;
    row.classList.add("new");
    runs.prepend(row);
    while (runs.children.length > Number(runs.dataset.most)) runs.lastElementChild.remove();
    document.getElementById("none")?.remove();
    seen += 1;
    if (news) news.textContent = `${seen} new since you opened this page.`;
  });
  live.addEventListener("apps", (event) => apps?.replaceChildren(fragment(event.data)));
  live.addEventListener("reload", () => location.reload());
  addEventListener("pagehide", () => live.close());
}

// Every textarea's form is sent with Ctrl+Enter (Cmd+Enter on a Mac).
addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches?.("textarea")) {
    event.target.form.requestSubmit();
  }
});

// After a form was sent, go on reading at its answer.
document.getElementById("result")?.focus();
