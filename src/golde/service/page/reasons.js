// Why the model finds a fact plausible.

import { count, decimals, fillWith, h, meter, probable, splitBadge, uniqueId } from "./dom.js";
import { address, entityAddress } from "./route.js";

const COMPONENTS = 6; // shown of many

export function factWords(run, [head, relation, tail]) {
  return h("span", { class: "fact" },
    h("a", { href: entityAddress(run, head) }, head), " ",
    h("a", { class: "relation", href: address("relations", { run, relation }) }, relation), " ",
    h("a", { href: entityAddress(run, tail) }, tail));
}

// The facts that rules and neighbours bring along are plain words inside a list.
function nearFacts(title, run, facts, typical, note) {
  if (!facts.length) return null;
  return h("section", {}, h("h4", {}, title),
    h("ul", { class: "plain" }, facts.map(({ fact, distance }) => {
      const near = Math.max(0, 1 - distance / (typical || 1));
      return h("li", { class: "reason-row" }, factWords(run, fact),
        meter(near, `distance ${decimals(distance, 1)}, typical ${decimals(typical, 1)}`, "meter-quiet"));
    })),
    note ? h("p", { class: "muted small" }, note) : null);
}

function ruleItem(run, rule) {
  return h("li", { class: "rule" },
    h("div", { class: "reason-row" }, h("span", {}, rule.words), meter(rule.confidence, `confidence ${decimals(rule.confidence, 2)}`)),
    h("p", { class: "muted small" },
      `Holds for ${count(rule.support)} of ${count(rule.instances)}`,
      rule.error === null ? "" : `; error of the learned maps ${decimals(rule.error, 2)}`, "."),
    h("p", { class: "small" }, "Because ", rule.because.map((fact, i) => [i ? ", and " : "", factWords(run, fact)]),
      rule.ways > 1 ? ` (${count(rule.ways)} ways)` : "", "."));
}

function favours(title, components, note) {
  const most = Math.max(...components.map(({ favour }) => Math.abs(favour)), 1e-9);
  return h("section", {}, h("h4", {}, title),
    h("ul", { class: "plain" }, components.map(({ space, favour }) => {
      const width = `${(Math.abs(favour) / most) * 50}%`;
      const bar = h("span", { class: "favour", role: "img", "aria-label": `${favour < 0 ? "against" : "for"} the fact by ${decimals(Math.abs(favour), 2)}` },
        h("span", { class: favour < 0 ? "favour-part against" : "favour-part", style: { width } }));
      return h("li", { class: "reason-row" }, h("span", {}, space), bar);
    })),
    note ? h("p", { class: "muted small" }, note) : null);
}

function rank(value, entities, side) {
  return `${count(Math.round(value))}${Math.round(value) === 1 ? " (first)" : ""} of ${count(entities)} as ${side}`;
}

function pair(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

export function reasonsOf(run, why) {
  const rules = why.rules.filter((rule) => rule.holds !== false);
  return h("div", { class: "reasons" },
    h("p", { class: "reason-head" }, factWords(run, why.fact), " ", splitBadge(why.known)),
    h("dl", { class: "pairs" },
      why.probability === null ? null : pair("Probability", probable(why.probability)),
      pair("Score", decimals(why.score, 2)),
      pair("Rank", `${rank(why.tail_rank, why.entities, "tail")}, ${rank(why.head_rank, why.entities, "head")}`)),
    h("div", { class: "reason-grid" },
      h("section", {}, h("h4", {}, "Rules that imply it"),
        rules.length ? h("ul", { class: "plain" }, rules.map((rule) => ruleItem(run, rule)))
          : h("p", { class: "muted" }, "No rule found in the graph leads to this fact.")),
      nearFacts("Nearest facts of the same relation", run, why.supporting, why.typical_distance, "A longer bar is a nearer fact."),
      why.geometries.length ? favours("Geometries", why.geometries) : null,
      why.components.length ? favours("Components, the most favourable", why.components.slice(0, COMPONENTS), "Right of the middle: nearer than is typical, which speaks for the fact.") : null,
      nearFacts("Facts about the head that are near", run, why.about_head, why.typical_distance),
      nearFacts("Facts about the tail that are near", run, why.about_tail, why.typical_distance)));
}

// A button, and the place below a row that it opens.
export function whyButton(source, run, fact) {
  const id = uniqueId("why");
  const place = h("div", { id, class: "why", hidden: true, role: "region", "aria-label": `Reasons for ${fact.head} ${fact.relation} ${fact.tail}` });
  const button = h("button", {
    type: "button", class: "button button-quiet", "aria-expanded": "false", "aria-controls": id,
    "aria-label": `Why ${fact.head} ${fact.relation} ${fact.tail}?`,
    onclick: () => {
      place.hidden = !place.hidden;
      button.setAttribute("aria-expanded", String(!place.hidden));
      if (!place.hidden && !place.childElementCount) {
        const { head, relation, tail } = fact;
        fillWith(place, () => source.explain(run, { head, relation, tail, top: 5 }), (why) => reasonsOf(run, why), "Looking for reasons");
      }
    },
    onkeydown: (event) => {
      if (event.key === "Escape" && !place.hidden) button.click();
    },
  }, "Why?");
  return [button, place];
}
