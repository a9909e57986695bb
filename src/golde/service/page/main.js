// The frame around the views: run, search, tabs, theme, keys.

import { ask } from "./ask.js";
import { combobox, entityOptions, relationOptions } from "./combobox.js";
import { compare } from "./compare.js";
import { empty, failure, h, loading } from "./dom.js";
import { explore } from "./explore.js";
import { fileSource } from "./file.js";
import { relations } from "./relations.js";
import { address, go, here } from "./route.js";
import { httpSource, useToken } from "./service.js";
import { space } from "./space.js";

const SHOWN = { explore, ask, relations, space, compare };
const TITLES = { explore: "Explore", ask: "Ask", relations: "Relations", space: "Space", compare: "Compare" };
const THEME = "golde.theme";

const embedded = document.getElementById("embedded");
const source = embedded ? fileSource(JSON.parse(embedded.textContent)) : httpSource();
const page = { source, all: [], run: null, version: "" };

function remembered(store, key) {
  try {
    return store.getItem(key);
  } catch {
    return null; // pages from files may have no store
  }
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

function isDark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function themeButton() {
  const label = () => (isDark() ? "Use light colours" : "Use dark colours");
  const button = h("button", {
    type: "button", class: "button button-icon", id: "theme", "aria-label": label(), title: label(),
    onclick: () => {
      const theme = isDark() ? "light" : "dark";
      setTheme(theme);
      try {
        localStorage.setItem(THEME, theme);
      } catch { /* then it holds until the page is left */ }
      button.setAttribute("aria-label", label());
      button.title = label();
      button.textContent = isDark() ? "☀" : "☾";
      show();
    },
  }, isDark() ? "☀" : "☾");
  return button;
}

function topBar(view, params) {
  const { run, all } = page;
  const search = combobox({
    label: "Search entities and relations", hidden: true, placeholder: "Search  ( / )",
    options: async (text, signal) => {
      const [names, kinds] = await Promise.all([entityOptions(source, run.name)(text, signal), text ? relationOptions(source, run.name)(text, signal) : []]);
      return [...names.slice(0, 8), ...kinds.slice(0, 3)];
    },
    chosen: ({ name, kind }) => (kind === "relation" ? go("relations", { run: run.name, relation: name }) : go("explore", { run: run.name, entity: name })),
  });
  search.classList.add("top-search");
  search.input.id = "search";
  const runs = h("select", { class: "select", "aria-label": "Run", onchange: (event) => go(view, { ...withoutNames(view, params), run: event.target.value }) },
    all.map(({ name }) => h("option", { value: name, selected: name === run.name }, name)));
  const tabs = Object.entries(TITLES).map(([name, title]) =>
    h("a", { class: "tab", href: address(name, { run: run.name }), "aria-current": name === view ? "page" : null }, title));
  return [
    h("div", { class: "top-row" }, h("a", { class: "brand", href: address("explore", { run: run.name }) }, "Gold", h("span", {}, "E")), runs, search, themeButton()),
    h("nav", { class: "tabs", "aria-label": "Views" }, tabs),
  ];
}

// Names of one run mean something in another only if both have one graph.
function withoutNames(view, params) {
  return view === "compare" ? {} : Object.fromEntries(Object.entries(params).filter(([name]) => name !== "component"));
}

function tokenForm(wrong) {
  const input = h("input", { class: "field", type: "password", autocomplete: "off", id: "token" });
  const use = () => { useToken(input.value.trim()); begin(); };
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") use(); });
  return h("div", { class: "start" }, h("h1", {}, "A token is needed"),
    h("p", { class: "lead" }, wrong ? "That is not the token of this service." : "This service answers those who have its token, which whoever started it can tell."),
    h("label", { class: "label", for: "token" }, "Token"), input,
    h("p", {}, h("button", { class: "button button-main", type: "button", onclick: use }, "Use it")));
}

let last = null;

function show() {
  const main = document.getElementById("main");
  const { view, params } = here();
  page.run = page.all.find(({ name }) => name === params.run) || page.all[0];
  document.getElementById("top").replaceChildren(...topBar(view, params));
  const strange = params.run && params.run !== page.run.name;
  main.replaceChildren(strange ? empty("No such run", `There is no run “${params.run}” here; choose one above.`) : SHOWN[view](page, params));
  const subject = params.entity || params.relation || params.head || "";
  document.title = [subject, TITLES[view], "GoldE"].filter(Boolean).join(" · ");
  document.getElementById("foot").replaceChildren(...foot());
  const place = `${view} ${subject}`;
  if (last !== null && last !== place) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  last = place;
}

function foot() {
  const left = source.live ? [] : source.leftOut(page.run.name);
  return [
    left.length ? h("details", { class: "left-out", open: true }, h("summary", {}, "What this file leaves out"), h("ul", {}, left.map((text) => h("li", {}, text)))) : null,
    ...[...page.run.notes, page.run.trouble].filter(Boolean).map((text) => h("p", { class: "note" }, text)),
    h("p", { class: "muted small" }, `GoldE ${page.version} · `, source.live ? h("a", { href: "/docs" }, "API") : `written ${source.made}`,
      " · keys: ", h("kbd", {}, "/"), " search, ", h("kbd", {}, "↑"), h("kbd", {}, "↓"), " rows, ", h("kbd", {}, "Enter"), " open, ", h("kbd", {}, "Esc"), " close"),
  ].filter(Boolean);
}

async function begin() {
  const main = document.getElementById("main");
  main.replaceChildren(loading("Opening"));
  try {
    const { runs, version } = await source.runs();
    [page.all, page.version] = [runs, version];
  } catch (error) {
    main.replaceChildren(error.status === 401 ? tokenForm(remembered(sessionStorage, "golde.token")) : failure(error, begin));
    return;
  }
  show();
}

setTheme(remembered(localStorage, THEME));
addEventListener("hashchange", show);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.run && show());
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  event.preventDefault();
  document.getElementById("search")?.focus();
});
begin();
