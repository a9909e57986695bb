// The present question as a command, a program or a request.

import { announce, h, uniqueId } from "./dom.js";

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

export function forms(run, path, question, cli, python) {
  const body = Object.fromEntries(given(question));
  const url = `${location.protocol.startsWith("http") ? location.origin : "http://127.0.0.1:8000"}/api/v1/${path}`;
  const json = JSON.stringify(body, null, 2);
  return {
    CLI: cli,
    Python: `import golde\n\nrun = golde.load_run(${JSON.stringify(run)})\n${python}`,
    JSON: json,
    curl: `curl ${shellWord(url)} --json ${shellWord(JSON.stringify(body))}`,
  };
}

export function pythonArguments(question) {
  return given(question).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
}

export function copyBox(run, texts) {
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
    h("p", { class: "muted small" }, `${run} stands for the folder of the run.`));
}
