// An entity: what the graph says of it, what it may lack, and what is near.

import { combobox, entityOptions } from "./combobox.js";
import { cliOption, command, copyBox, forms, placeOf, pythonArguments } from "./copying.js";
import { confidence, count, decimals, empty, fillWith, h, several, splitBadge, withArrows } from "./dom.js";
import { whyButton } from "./reasons.js";
import { address, entityAddress, go } from "./route.js";

const FACTS_SHOWN = 60;

export function explore(page, params) {
  return params.entity ? entityPage(page, params.entity) : startPage(page);
}

function tile(name, value) {
  return h("div", { class: "tile" }, h("span", { class: "tile-value" }, value), h("span", { class: "tile-name" }, name));
}

function startPage({ source, run }) {
  const facts = Object.values(run.facts).reduce((sum, some) => sum + some, 0);
  const figures = run.metrics.test || run.metrics.valid || Object.values(run.metrics)[0];
  const frequent = h("div", { class: "chips" });
  fillWith(frequent, () => source.entities(run.name, "", 14), ({ found }) =>
    found.map(({ name }) => h("a", { class: "chip", href: entityAddress(run.name, name) }, name)));
  const search = combobox({
    label: `Search ${count(run.entities)} entities`, placeholder: "Begin to type a name", options: entityOptions(source, run.name),
    chosen: ({ name }) => go("explore", { run: run.name, entity: name }),
  });
  return h("div", { class: "start" },
    h("h1", {}, "Ask the graph"),
    h("p", { class: "lead" }, `Trained on ${count(run.facts.train)} facts of the graph “${run.graph}”. See what it knows, what it would add, and why.`),
    search,
    h("h2", { class: "quiet-heading" }, source.live ? "Most frequent" : "Begin with"), frequent,
    h("div", { class: "tiles" },
      tile("entities", count(run.entities)), tile("relations", count(run.relations)), tile("facts", count(facts)),
      figures ? tile(run.metrics.test ? "test MRR" : "MRR", decimals(figures.mrr)) : null,
      figures && figures.hits_at_10 !== null ? tile("hits@10", decimals(figures.hits_at_10)) : null,
      tile(run.kind === "golde" ? "space" : run.kind, run.signature)),
    run.calibrated ? null : h("p", { class: "note" }, "This run is not calibrated: answers have scores, whose order alone has a meaning. ", h("code", {}, "golde calibrate"), " gives them probabilities."));
}

function entityPage({ source, run }, name) {
  const known = h("div", {});
  const lacking = h("div", {});
  const near = h("div", { class: "chips" });
  const total = h("span", { class: "muted" });
  const first = source.facts(run.name, name, FACTS_SHOWN, 0);
  const article = h("article", {});
  first.catch((error) => { if (error.code === "unknown_entity") article.replaceChildren(unknown(run, name, error)); });
  showFacts(source, run, name, known, total, first);
  fillWith(lacking, () => source.suggestions(run.name, name), ({ suggested }) => suggestedGroups(source, run, name, suggested), "Asking the model");
  fillWith(near, () => source.neighbours(run.name, name), ({ neighbours }) =>
    neighbours.map((one) => h("a", { class: "chip", href: entityAddress(run.name, one.name), title: `distance ${decimals(one.distance, 2)}` }, one.name)));
  article.append(
    h("div", { class: "title-row" },
      h("div", {}, h("h1", {}, name), total),
      h("div", { class: "actions" },
        h("a", { class: "button", href: address("ask", { run: run.name, head: name }) }, "Ask about it"),
        run.components.length ? h("a", { class: "button", href: address("space", { run: run.name, entity: name }) }, "Show in space") : null)),
    h("div", { class: "columns" },
      h("section", { "aria-labelledby": "lacking" }, h("h2", { id: "lacking" }, "Predicted"), h("p", { class: "muted" }, "Facts the graph lacks, for relations that such entities have."), lacking),
      h("section", { "aria-labelledby": "known" }, h("h2", { id: "known" }, "Known"), h("p", { class: "muted" }, "What the graph says."), known)),
    h("section", { "aria-labelledby": "near" }, h("h2", { id: "near" }, "Near in the space"), near));
  return article;
}

function unknown(run, name, { suggestions }) {
  return h("div", { class: "start" }, h("h1", {}, "No such entity"), h("p", { class: "lead" }, `The graph has nothing called “${name}”.`),
    suggestions.length ? [h("h2", { class: "quiet-heading" }, "Did you mean"), h("div", { class: "chips" }, suggestions.map((one) => h("a", { class: "chip", href: entityAddress(run.name, one) }, one)))]
      : h("a", { class: "button", href: address("explore", { run: run.name }) }, "Search"));
}

function suggestedGroups(source, run, name, suggested) {
  if (!suggested.length) return empty("Nothing to add", "No side of a relation fits this entity that it does not fill already.");
  const groups = suggested.map((group) => h("section", { class: "group" },
    h("h3", { class: "group-name" }, side(run, name, group.relation, group.missing),
      h("a", { class: "more", href: address("ask", { run: run.name, relation: group.relation, [group.missing === "tail" ? "head" : "tail"]: name }), "aria-label": `More answers for ${group.relation}` }, "more")),
    h("ul", { class: "rows" }, group.answers.map((answer) => answerRow(source, run, answer)))));
  return withArrows(h("div", {}, groups));
}

// A fact with one end left open, the entity being at the other.
function side(run, name, relation, missing) {
  const link = h("a", { class: "relation", href: address("relations", { run: run.name, relation }) }, relation);
  const self = h("span", { class: "self" }, name);
  return h("span", {}, missing === "tail" ? [self, " ", link, " …"] : ["… ", link, " ", self]);
}

export function answerRow(source, run, answer, rank) {
  const [button, place] = whyButton(source, run.name, answer);
  const isRelation = answer.answer === answer.relation && answer.answer !== answer.head && answer.answer !== answer.tail;
  const href = isRelation ? address("relations", { run: run.name, relation: answer.answer }) : entityAddress(run.name, answer.answer);
  return h("li", { class: rank ? "row row-ranked" : "row" },
    rank ? h("span", { class: "rank", "aria-hidden": "true" }, rank) : null,
    h("span", { class: "row-name" }, h("a", { href, "data-row": "" }, answer.answer), " ", splitBadge(answer.known)),
    confidence(answer), button, place);
}

function showFacts(source, run, name, place, total, first) {
  let shown = [];
  async function more() {
    const found = await (shown.length ? source.facts(run.name, name, FACTS_SHOWN, shown.length) : first);
    shown = [...shown, ...found.facts];
    return found;
  }
  const show = (found) => {
    total.textContent = several(found.total, "fact", "facts");
    if (!found.total) return empty("No facts", "The graph names this entity in no fact.");
    const groups = new Map();
    for (const fact of shown) {
      const missing = fact.head === name ? "tail" : "head";
      const key = `${missing} ${fact.relation}`;
      if (!groups.has(key)) groups.set(key, { relation: fact.relation, missing, facts: [] });
      groups.get(key).facts.push(fact);
    }
    const left = found.total - shown.length;
    return withArrows(h("div", {},
      oneWay(groups).map(({ relation, missing, facts }) => h("section", { class: "group" },
        h("h3", { class: "group-name" }, side(run, name, relation, missing)),
        h("ul", { class: "known" }, facts.map((fact) => h("li", {},
          h("a", { href: entityAddress(run.name, fact[missing]), "data-row": "" }, fact[missing]), fact.split === "train" ? null : [" ", splitBadge(fact.split)]))))),
      left > 0 ? h("button", { class: "button", type: "button", onclick: () => fillWith(place, more, show) }, `Show more (${count(left)} left)`) : null));
  };
  fillWith(place, more, show);
}

// Without those that say the same backwards, such as borders.
function oneWay(groups) {
  const names = ({ facts, missing }) => facts.map((fact) => fact[missing]).sort().join("\n");
  return [...groups.values()].filter((group) => {
    const other = groups.get(`tail ${group.relation}`);
    return group.missing === "tail" || !other || names(other) !== names(group);
  });
}

export function questionForms(run, question) {
  const words = ["predict", placeOf(run), ...["head", "relation", "tail"].flatMap((slot) => (question[slot] ? cliOption(slot, question[slot]) : [])),
    "--top", String(question.top), "--known", question.known];
  const python = `answers = run.predict(${pythonArguments(question)})`;
  return copyBox([run], forms(run, `runs/${encodeURIComponent(run.name)}/predict`, question, command(words), python));
}
