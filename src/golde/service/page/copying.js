// The present question as a command, a program or a request.

import { announce, h, uniqueId } from "./dom.js";
import { tokenInUse } from "./service.js";

export function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// A name that begins with a dash would be taken for an option of its own.
export function cliOption(name, value) {
  return value.startsWith("-") ? [`--${name}=${value}`] : [`--${name}`, value];
}

export function command(words) {
  return ["golde", ...words].map(shellWord).join(" ");
}

function given(question) {
  return Object.entries(question).filter(([, value]) => value !== null && value !== undefined);
}

// Where a run lies; whoever is not told puts it in place of the name.
export function placeOf(run) {
  return run.folder || run.name;
}

function curl(path, words) {
  const service = location.protocol.startsWith("http") ? location.origin : "http://127.0.0.1:8000";
  const token = tokenInUse() ? ` --header "Authorization: Bearer $GOLDE_TOKEN"` : "";
  return `curl ${shellWord(`${service}/api/v1/${path}`)}${token} ${words.map(shellWord).join(" ")}`;
}

export function forms(run, path, question, cli, python, { post = true } = {}) {
  const body = Object.fromEntries(given(question));
  return {
    CLI: cli,
    Python: `import golde\n\nrun = golde.load_run(${JSON.stringify(placeOf(run))})\n${python}`,
    JSON: JSON.stringify(body, null, 2),
    curl: curl(path, post ? ["--json", JSON.stringify(body)]
      : ["--get", ...Object.entries(body).flatMap(([name, value]) => ["--data-urlencode", `${name}=${value}`])]),
  };
}

export function pythonArguments(question) {
  return given(question).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
}

function whereToRun(runs) {
  if (runs.some(({ folder }) => !folder)) return `${runs.map(({ name }) => name).join(" or ")} stands for the folder of the run.`;
  return runs.every(({ folder }) => folder.startsWith("/")) ? null : "Paths are as the service was given them: run this where it was started.";
}

export function copyBox(runs, texts) {
  const names = Object.keys(texts);
  const panelId = uniqueId("copied");
  let shown = names[0];
  const code = h("pre", { class: "code", id: panelId, role: "tabpanel", tabindex: "0" });
  const said = h("span", { class: "muted small" });
  const tabs = names.map((name) => h("button", {
    type: "button", role: "tab", class: "tab-small", "aria-controls": panelId,
    onclick: () => choose(name),
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = (names.indexOf(shown) + step + names.length) % names.length;
      choose(names[next]);
      tabs[next].focus();
    },
  }, name));

  function choose(name) {
    shown = name;
    code.textContent = texts[name];
    code.setAttribute("aria-label", name);
    said.textContent = "";
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(names[i] === name));
      tab.tabIndex = names[i] === name ? 0 : -1;
    });
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(texts[shown]);
    } catch {
      getSelection().selectAllChildren(code); // pages from files may not write to the clipboard
      document.execCommand("copy");
      getSelection().removeAllRanges();
    }
    said.textContent = "Copied";
    announce(`${shown} copied`);
  }

  choose(shown);
  return h("details", { class: "copy" },
    h("summary", {}, "Copy this as CLI, Python or JSON"),
    h("div", { class: "copy-bar" },
      h("div", { role: "tablist", "aria-label": "Form", class: "tabs-small" }, tabs),
      h("span", { class: "spring" }), said,
      h("button", { type: "button", class: "button button-small", onclick: copy }, "Copy")),
    code,
    h("p", { class: "muted small" }, whereToRun(runs)));
}
