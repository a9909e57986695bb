// Elements, numbers in words, and the live region. Text is always set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

let counted = 0;

export function uniqueId(word) {
  counted += 1;
  return `${word}-${counted}`;
}

export function announce(text) {
  const live = document.getElementById("live");
  live.textContent = "";
  setTimeout(() => { live.textContent = text; }, 50); // the same words again are told again
}

export function count(number) {
  return number.toLocaleString("en-GB");
}

export function several(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many}`;
}

export function decimals(number, digits = 3) {
  if (number === null || number === undefined || !Number.isFinite(number)) return "–";
  return number.toFixed(digits).replace("-", "−");
}

// A calibrated probability is never certain, however many digits it takes.
export function probable(p) {
  return p > 0.999 ? "> 0.999" : p < 0.001 ? "< 0.001" : p.toFixed(3);
}

export function meter(share, label, kind = "") {
  const width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h("span", { class: `meter ${kind}`, role: "img", "aria-label": label },
    h("span", { class: "meter-part", style: { width } }));
}

export function confidence(answer) {
  if (answer.probability === null) {
    return h("span", { class: "confidence" }, h("span", { class: "figure muted", title: "Score; only the order has a meaning" }, decimals(answer.score, 2)));
  }
  const said = probable(answer.probability);
  return h("span", { class: "confidence" }, meter(answer.probability, `probability ${said}`), h("span", { class: "figure" }, said));
}

export function splitBadge(split) {
  const words = { train: "known", valid: "held out (valid)", test: "held out (test)" };
  return split ? h("span", { class: `badge ${split === "train" ? "" : "badge-held"}` }, words[split]) : null;
}

export function loading(text = "Loading") {
  return h("div", { class: "loading", role: "status" }, h("span", { class: "spinner", "aria-hidden": "true" }), `${text}…`);
}

export function empty(title, ...words) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), words.length ? h("p", { class: "muted" }, ...words) : null);
}

export function failure(error, again) {
  if (error.leftOut) return empty("Left out", error.message);
  return h("div", { class: "failure", role: "alert" },
    h("p", { class: "empty-title" }, error.title || "That did not work"),
    h("p", {}, error.message),
    again ? h("button", { class: "button", type: "button", onclick: again }, "Try again") : null);
}

// Fill a place with what a promise brings; of several only the newest shows.
export async function fillWith(place, work, show, words) {
  const turn = (place.turn || 0) + 1;
  place.turn = turn;
  const waiting = setTimeout(() => { if (place.turn === turn) place.replaceChildren(loading(words)); }, 120);
  place.setAttribute("aria-busy", "true");
  try {
    const found = await work();
    if (place.turn === turn) place.replaceChildren(...[show(found)].flat(Infinity).filter(Boolean));
  } catch (error) {
    if (place.turn !== turn) return;
    place.replaceChildren(failure(error, () => fillWith(place, work, show, words)));
  } finally {
    clearTimeout(waiting);
    if (place.turn === turn) place.removeAttribute("aria-busy");
  }
}

// Up and down lead from row to row.
export function withArrows(list) {
  list.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    if (event.target.matches("input, select")) return;
    const rows = [...list.querySelectorAll("[data-row]")];
    const here = rows.findIndex((row) => row === document.activeElement || row.closest("li, tr")?.contains(document.activeElement));
    const next = rows[here + (event.key === "ArrowDown" ? 1 : -1)];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });
  return list;
}
