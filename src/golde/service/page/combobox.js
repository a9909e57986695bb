// A field with names to choose from: type, arrows, Enter, Esc.

import { announce, h, several, uniqueId } from "./dom.js";

// options(text, signal) → [{ name, detail, kind }]; chosen(option) is called on Enter or a click.
export function combobox({ label, placeholder, value = "", options, chosen, cleared, hidden = false }) {
  const listId = uniqueId("names");
  const inputId = uniqueId("field");
  const list = h("ul", { class: "options", id: listId, role: "listbox", "aria-label": label, hidden: true });
  const input = h("input", {
    id: inputId, class: "field", type: "text", role: "combobox", autocomplete: "off", spellcheck: "false",
    autocapitalize: "off", enterkeyhint: "search", placeholder, "aria-label": hidden ? label : null,
    "aria-expanded": "false", "aria-controls": listId, "aria-autocomplete": "list",
  });
  input.value = value;
  let shown = [];
  let at = -1;
  let asking = null;
  let timer = 0;

  function close() {
    list.hidden = true;
    unmark();
    input.setAttribute("aria-expanded", "false");
    if (asking) asking.abort();
    clearTimeout(timer);
  }

  function unmark() {
    at = -1;
    input.removeAttribute("aria-activedescendant");
    for (const option of list.querySelectorAll("[aria-selected=true]")) option.setAttribute("aria-selected", "false");
  }

  function mark(to) {
    at = shown.length ? (to + shown.length) % shown.length : -1;
    [...list.querySelectorAll("[role=option]")].forEach((option, i) => {
      option.setAttribute("aria-selected", String(i === at));
      if (i === at) {
        input.setAttribute("aria-activedescendant", option.id);
        option.scrollIntoView({ block: "nearest" });
      }
    });
  }

  function choose(option) {
    input.value = option.name;
    close();
    chosen(option);
  }

  function show(found) {
    shown = found;
    at = -1;
    list.replaceChildren(...found.map((option) =>
      h("li", {
        id: uniqueId("option"), role: "option", class: "option", "aria-selected": "false",
        onmousedown: (event) => { event.preventDefault(); choose(option); },
      }, h("span", { class: "option-name" }, option.name), h("span", { class: "option-detail" }, option.detail || ""))));
    if (!found.length) list.append(h("li", { class: "option option-none" }, "No such name"));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    announce(found.length ? several(found.length, "name found", "names found") : "No such name");
  }

  // The names for what is typed now; null where something else was typed meanwhile.
  async function ask() {
    if (asking) asking.abort();
    const mine = new AbortController();
    asking = mine;
    try {
      const found = await options(input.value.trim(), mine.signal);
      if (mine.signal.aborted || document.activeElement !== input) return null;
      show(found);
      return found;
    } catch (error) {
      if (error.name !== "AbortError") close();
      return null;
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    unmark(); // what was marked belongs to other letters
    if (!input.value && cleared) cleared();
    timer = setTimeout(ask, 80);
  });
  input.addEventListener("focus", () => { input.select(); ask(); });
  input.addEventListener("click", () => { if (list.hidden) ask(); });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", async (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden && !(await ask())) return;
      mark(event.key === "ArrowDown" ? at + 1 : at < 0 ? shown.length - 1 : at - 1);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (at >= 0) choose(shown[at]);
      else if (input.value.trim()) {
        clearTimeout(timer);
        const found = await ask();
        if (found && found.length) choose(found[0]);
      }
    } else if (event.key === "Escape") {
      if (!list.hidden) {
        event.stopPropagation();
        close();
      } else if (input.value) {
        input.value = "";
        if (cleared) cleared();
      } else input.blur();
    }
  });
  const box = h("div", { class: "combobox" }, hidden ? null : h("label", { class: "label", for: inputId }, label), input, list);
  box.input = input;
  return box;
}

export function entityOptions(source, run) {
  return async (text, signal) => {
    const { found } = await source.entities(run, text, 8, signal);
    return found.map(({ name, facts, match }) => ({ name, kind: "entity", detail: `${match === "similar" ? "similar · " : ""}${several(facts, "fact", "facts")}` }));
  };
}

export function relationOptions(source, run) {
  return async (text, signal) => {
    const { found } = await source.relations(run, text, 8, signal);
    return found.map(({ name, facts }) => ({ name, kind: "relation", detail: `relation · ${several(facts, "fact", "facts")}` }));
  };
}
