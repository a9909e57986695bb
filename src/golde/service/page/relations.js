// A relation: its algebra, read off facts and learned maps, and the shape of its map.

import { bars, ellipses, figure, spectrum } from "./charts.js";
import { combobox, relationOptions } from "./combobox.js";
import { cliOption, command, copyBox, forms, placeOf } from "./copying.js";
import { count, decimals, empty, fillWith, h, meter, several, withArrows } from "./dom.js";
import { address, go } from "./route.js";

const LISTED = 100;

export function relations(page, params) {
  const { source, run } = page;
  const list = h("div", {});
  const detail = h("div", { class: "detail" });
  fillWith(list, () => source.relations(run.name, "", LISTED), ({ found }) => {
    const most = Math.max(...found.map(({ facts }) => facts), 1);
    return withArrows(h("ul", { class: "relation-list" }, found.map(({ name, facts }) => h("li", {},
      h("a", { href: address("relations", { run: run.name, relation: name }), "data-row": "", "aria-current": name === params.relation ? "page" : null, style: { "--share": `${(facts / most) * 100}%` } },
        h("span", {}, name), h("span", { class: "muted small" }, count(facts)))))));
  });
  if (params.relation) {
    fillWith(detail, () => source.relation(run.name, params.relation), (found) => relationDetail(run, params.relation, found), "Reading the maps");
  } else detail.append(empty("Choose a relation", "See whether it is symmetric, what it is the inverse of, what it is composed of, and the shape of its map."));
  const search = combobox({
    label: "Find a relation", hidden: true, placeholder: `Find one of ${count(run.relations)} relations`, value: "",
    options: relationOptions(source, run.name), chosen: ({ name }) => go("relations", { run: run.name, relation: name }),
  });
  return h("article", { class: params.relation ? "aside-layout chosen" : "aside-layout" },
    h("nav", { class: "aside", "aria-label": "Relations" }, search, list),
    detail);
}

function verdict(question, rules, one) {
  const best = rules[0];
  return h("div", { class: best ? "verdict yes" : "verdict" },
    h("h3", {}, question),
    best ? h("ul", { class: "plain" }, rules.slice(0, 4).map(one)) : h("p", { class: "muted" }, "No such rule was found."));
}

function evidence(rule) {
  return h("div", { class: "evidence" },
    meter(rule.confidence, `confidence ${decimals(rule.confidence, 2)}`),
    h("span", { class: "muted small" }, `${decimals(rule.confidence * 100, 0)}% of ${count(rule.instances)}${rule.error === null ? "" : ` · map error ${decimals(rule.error, 2)}`}`));
}

function algebra(run, rules) {
  const kind = (name) => rules.filter((rule) => rule.kind === name);
  const named = (name) => h("a", { class: "relation", href: address("relations", { run: run.name, relation: name }) }, name);
  return h("div", { class: "verdicts" },
    verdict("Symmetric?", kind("symmetric"), (rule) => h("li", {}, "Yes: ", rule.words, evidence(rule))),
    verdict("Inverse of?", kind("inverse"), (rule) => h("li", {}, named(rule.body[0]), evidence(rule))),
    verdict("Composed of?", kind("composition"), (rule) => h("li", {}, h("span", { title: rule.words }, named(rule.body[0]), " then ", named(rule.body[1])), evidence(rule))),
    verdict("Implied by?", kind("implication"), (rule) => h("li", {}, named(rule.body[0]), evidence(rule))));
}

function tile(name, value, title) {
  return h("div", { class: "tile", title }, h("span", { class: "tile-value" }, value), h("span", { class: "tile-name" }, name));
}

function drawings(group) {
  const found = [];
  if (group.curvature) found.push(figure("Curvature", "−1/β of each component; −1 is where training begins", bars("Curvature", group.curvature.components)));
  if (group.boost) found.push(figure("Boost", "How far the map moves the origin", bars("Boost", group.boost.components)));
  found.push(figure("Rotation spectrum", "Angles of all components: 0° is kept, 180° reflected", spectrum(group.angles.components.flat())));
  if (group.weights) found.push(figure("Scaling", "Longest and shortest semi-axis of the ellipsoids", ellipses(group.weights.components)));
  return found;
}

function relationDetail(run, name, { geometry, rules }) {
  const groups = geometry ? geometry.groups : [];
  const first = (figureName) => groups.map((group) => group[figureName]).find(Boolean);
  const [curvature, stretch] = [first("curvature"), first("stretch")];
  const question = { relation: name };
  const words = ["geometry", placeOf(run), ...cliOption("relation", name)];
  const python = `from golde.analysis.relation_geometry import relation_geometry\n\nnumber = run.graph.relations.id(${JSON.stringify(name)})\n(shape,) = relation_geometry(run.model, run.graph, [number])`;
  return [
    h("a", { class: "back", href: address("relations", { run: run.name }) }, "← All relations"),
    h("div", { class: "title-row" }, h("h1", {}, name),
      h("div", { class: "actions" },
        h("a", { class: "button", href: address("ask", { run: run.name, relation: name }) }, "Ask with it"),
        geometry ? h("a", { class: "button", href: address("space", { run: run.name, shape: name }) }, "Show in space") : null)),
    geometry ? h("div", { class: "tiles" },
      tile("training facts", count(geometry.facts)),
      tile("involution error", decimals(geometry.involution_error, 3), "Of the map applied twice: 0 leads back, about 1 is random"),
      curvature ? tile("median curvature", decimals(curvature.median, 2)) : null,
      stretch ? tile("median stretch", decimals(stretch.median, 2), "Longest over shortest semi-axis") : null) : null,
    h("h2", {}, "Algebra"),
    algebra(run, rules),
    h("h2", {}, "Geometry"),
    geometry ? groups.map((group) => h("section", { class: "geometry-group" },
      h("h3", {}, `${group.space}, ${group.geometry}`), h("div", { class: "figures" }, drawings(group))))
      : empty("No curved maps", `A model of kind ${run.kind} has none to show.`),
    copyBox([run], forms(run, `runs/${encodeURIComponent(run.name)}/relation`, question, command(words), python, { post: false })),
    h("p", { class: "unseen" }, several(rules.length, "rule", "rules")),
  ];
}
