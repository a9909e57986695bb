// Two runs on one graph, side by side.

import { command, copyBox, forms, placeOf } from "./copying.js";
import { count, decimals, empty, fillWith, h } from "./dom.js";
import { address, go } from "./route.js";

const FIGURES = [["mrr", "MRR", 3], ["hits@1", "Hits@1", 3], ["hits@3", "Hits@3", 3], ["hits@10", "Hits@10", 3], ["mr", "Mean rank", 1]];

export function compare(page, params) {
  const { source, all, run } = page;
  const alike = (other) => all.filter((one) => one.digest === other.digest && one !== other);
  const first = all.find(({ name }) => name === params.first) || run;
  const second = alike(first).find(({ name }) => name === params.second) || alike(first)[0];
  const split = ["test", "valid"].includes(params.split) ? params.split : "test";
  const again = (change) => go("compare", { run: run.name, first: first.name, second: second && second.name, split, ...change });
  const choice = (label, options, chosen, change) => h("label", { class: "choice" }, h("span", { class: "label" }, label),
    h("select", { class: "select", onchange: (event) => again(change(event.target.value)) },
      options.map((name) => h("option", { value: name, selected: name === chosen }, name))));
  const place = h("div", {});
  const intro = [h("h1", {}, "Compare two runs"), h("p", { class: "lead" }, "On one graph, split alike, ranked under one protocol.")];
  if (!second) {
    return h("article", {}, intro, empty("Nothing to compare with", source.live ? "Start the service with two runs on one graph: golde serve runs/a runs/b" : "This file holds one run on this graph. Name two to have them compared: golde report A B --html FILE"));
  }
  fillWith(place, () => source.compare(first.name, second.name, split), (found) => compared(page, found, split), "Comparing");
  return h("article", {}, intro,
    h("div", { class: "wishes" },
      choice("First", all.map(({ name }) => name), first.name, (name) => ({ first: name, second: null })),
      choice("Second", alike(first).map(({ name }) => name), second.name, (name) => ({ second: name })),
      source.live ? choice("Facts", ["test", "valid"], split, (name) => ({ split: name })) : null),
    place);
}

function compared({ all, run }, found, split) {
  const [one, other] = found.runs;
  const both = found.runs.map((figures) => all.find(({ name }) => name === figures.run));
  const rows = FIGURES.filter(([key]) => key in one.metrics.both).map(([key, name, digits]) => {
    const [a, b] = [one.metrics.both[key], other.metrics.both[key]];
    const better = key === "mr" ? b < a : b > a;
    return h("tr", {}, h("th", { scope: "row" }, name),
      h("td", { class: "figure" }, decimals(a, digits)), h("td", { class: "figure" }, decimals(b, digits)),
      h("td", { class: `figure ${a === b ? "" : better ? "good" : "bad"}` }, signed(b - a, digits)));
  });
  return [
    h("div", { class: "table-box" }, h("table", { class: "table" },
      h("caption", { class: "unseen" }, `Figures on ${split}`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, "Figure")), h("th", { scope: "col", class: "figure" }, one.run), h("th", { scope: "col", class: "figure" }, other.run), h("th", { scope: "col", class: "figure" }, "Difference"))),
      h("tbody", {}, rows,
        h("tr", {}, h("th", { scope: "row" }, "Space"), h("td", { class: "figure words" }, one.space), h("td", { class: "figure words" }, other.space), h("td", {})),
        h("tr", {}, h("th", { scope: "row" }, "Parameters"), h("td", { class: "figure" }, count(one.parameters)), h("td", { class: "figure" }, count(other.parameters)), h("td", {}))))),
    h("p", { class: "muted small" }, significance(other.against_first)),
    h("h2", {}, "By relation"),
    h("p", { class: "muted" }, `MRR on ${split}; a bar to the right is in favour of ${other.run}.`),
    byRelation(run, one, other),
    copyBox(both, forms(both[0], "compare", { first: one.run, second: other.run, split }, command(["compare", ...both.map(placeOf), "--split", split]),
      `other = golde.load_run(${JSON.stringify(placeOf(both[1]))})\nfigures = [r.evaluate(${JSON.stringify(split)}).metrics for r in (run, other)]`)),
  ];
}

function significance(tested) {
  const names = Object.fromEntries(FIGURES);
  return Object.entries(tested).map(([key, { interval, p }]) =>
    `${names[key]}: 95% interval of the difference ${signed(interval[0], 3)} … ${signed(interval[1], 3)}, p ${p < 0.001 ? "< 0.001" : `= ${decimals(p, 3)}`}.`).join(" ");
}

function signed(value, digits) {
  return value === undefined || value === null ? "–" : `${value > 0 ? "+" : ""}${decimals(value, digits)}`;
}

function byRelation(run, one, other) {
  const mrr = (figures) => (figures.both || figures).mrr;
  const names = Object.keys(one.relations).filter((name) => name in other.relations);
  const rows = names.map((name) => ({ name, a: mrr(one.relations[name]), b: mrr(other.relations[name]) })).sort((x, y) => (y.b - y.a) - (x.b - x.a));
  const most = Math.max(...rows.map(({ a, b }) => Math.abs(b - a)), 1e-9);
  return h("ul", { class: "difference-list" }, rows.map(({ name, a, b }) => h("li", { class: "difference" },
    h("a", { class: "relation", href: address("relations", { run: run.name, relation: name }) }, name),
    h("span", { class: "favour", role: "img", "aria-label": `${signed(b - a, 3)}` }, h("span", { class: b < a ? "favour-part against" : "favour-part", style: { width: `${(Math.abs(b - a) / most) * 50}%` } })),
    h("span", { class: "figure small" }, `${decimals(a)} → ${decimals(b)}`))));
}
