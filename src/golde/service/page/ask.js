// A question: a fact with one of its three names left out.

import { combobox, entityOptions, relationOptions } from "./combobox.js";
import { cliOption, command, copyBox, forms, placeOf } from "./copying.js";
import { announce, empty, fillWith, h, several, withArrows } from "./dom.js";
import { answerRow, questionForms } from "./explore.js";
import { reasonsOf } from "./reasons.js";
import { go } from "./route.js";

const SLOTS = ["head", "relation", "tail"];
const EXAMPLES = 4;

const whatProbabilitiesMean = (run) => run.prior === null
  ? "A probability is that of an answer: of answers with its score to questions about validation facts, so many were facts."
  : `A probability is that of one claim, true with chance ${run.prior} before its score is seen.`;

let filling = false; // a name was just chosen: the next field is where to go on

export function ask(page, params) {
  const { source, run } = page;
  const asked = { head: params.head || null, relation: params.relation || null, tail: params.tail || null };
  const top = Math.min(1000, Math.max(1, Number(params.top) || 10));
  const knownWays = { mark: "Mark known answers", drop: "Only new answers", keep: "Keep all" };
  const known = params.known in knownWays ? params.known : "mark";
  const again = (change) => go("ask", { run: run.name, ...asked, top: top === 10 ? null : top, known: known === "mark" ? null : known, ...change });

  const slot = (name) => {
    const options = name === "relation" ? relationOptions(source, run.name) : entityOptions(source, run.name);
    const box = combobox({
      label: { head: "Head", relation: "Relation", tail: "Tail" }[name], placeholder: "?", value: asked[name] || "",
      options, chosen: (option) => { filling = true; again({ [name]: option.name }); }, cleared: () => asked[name] && again({ [name]: null }),
    });
    if (!asked[name]) box.classList.add("unknown");
    return box;
  };
  const form = h("div", { class: "question" }, SLOTS.map(slot));
  const wishes = h("div", { class: "wishes" },
    h("label", {}, "Answers ", h("select", { class: "select", onchange: (event) => again({ top: event.target.value }) },
      [...new Set([10, 25, 50, 100, top])].sort((a, b) => a - b).map((n) => h("option", { value: n, selected: n === top }, String(n))))),
    h("label", {}, "In the graph ", h("select", { class: "select", onchange: (event) => again({ known: event.target.value }) },
      Object.entries(knownWays).map(([value, text]) => h("option", { value, selected: value === known }, text)))));
  const place = h("div", { class: "answers" });
  const given = SLOTS.filter((name) => asked[name]);

  if (filling && given.length === 1) requestAnimationFrame(() => form.querySelector(".unknown .field").focus());
  filling = false;
  if (given.length === 2) {
    const question = { ...Object.fromEntries(given.map((name) => [name, asked[name]])), top, known };
    fillWith(place, () => source.predict(run.name, question), ({ answers }) => {
      announce(several(answers.length, "answer", "answers"));
      if (!answers.length) return empty("No answer left", "All that could be said is in the graph already.");
      return [
        withArrows(h("ol", { class: "rows" }, answers.map((answer, i) => answerRow(source, run, answer, i + 1)))),
        run.calibrated ? h("p", { class: "muted small" }, whatProbabilitiesMean(run), asked.relation ? "" : " Answers are in the order of their scores; each relation is calibrated on its own, so probabilities need not fall with them.")
          : h("p", { class: "muted small" }, "Scores of a run that is not calibrated: only their order has a meaning."),
        questionForms(run, question),
      ];
    }, "Asking the model");
  } else if (given.length === 3) {
    const fact = { ...asked, top: 8 };
    const python = `from golde.analysis.explain import explain\n\nwhy = explain(run.model, run.graph, ${SLOTS.map((name) => JSON.stringify(asked[name])).join(", ")})`;
    const words = ["explain", placeOf(run), ...SLOTS.flatMap((name) => cliOption(name, asked[name]))];
    fillWith(place, () => source.explain(run.name, fact), (why) => [
      h("div", { class: "panel" }, reasonsOf(run.name, why)),
      copyBox([run], forms(run, `runs/${encodeURIComponent(run.name)}/explain`, fact, command(words), python)),
    ], "Looking for reasons");
  } else {
    place.append(empty("Fill in two of the three", "The model finds the third. With all three filled in it says how plausible the fact is, and why."));
    const examples = h("div", { class: "chips" });
    place.append(examples);
    fillWith(examples, () => exampleQuestions(source, run), (questions) => questions.map((question) =>
      h("button", { type: "button", class: "chip", onclick: () => again(question) }, `${question.head} · ${question.relation} · ?`)));
  }
  return h("article", {}, h("h1", {}, "Ask a question"), h("p", { class: "lead" }, "Leave one name out: it is what the model looks for."), form, given.length === 3 ? h("div", { class: "wishes" }) : wishes, place);
}

// Questions about frequent entities that the graph has an answer to.
async function exampleQuestions(source, run) {
  const { found } = await source.entities(run.name, "", EXAMPLES);
  const questions = [];
  for (const { name } of found) {
    const { facts } = await source.facts(run.name, name, 1, 0);
    if (facts.length) questions.push({ head: facts[0].head, relation: facts[0].relation, tail: null });
  }
  return questions;
}
