// Answers from what a report holds, in the forms of the service.

import { unpacked } from "./service.js";

class LeftOut extends Error {
  constructor(what) {
    super(`${what} is not in this file; “golde serve” has it.`);
    this.leftOut = true;
  }
}

function plainly(text) {
  return text.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "").replace(/[\s_\p{P}]+/gu, " ").trim();
}

// Letters wrong, missing or too many between what is asked and the best beginning of a name.
function slips(asked, name) {
  let row = Array.from({ length: name.length + 1 }, (_, j) => j);
  for (let i = 1; i <= asked.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= name.length; j += 1) next[j] = Math.min(row[j - 1] + (asked[i - 1] !== name[j - 1]), row[j] + 1, next[j - 1] + 1);
    row = next;
  }
  return Math.min(...row);
}

function searched(names, text, limit) {
  const asked = plainly(text);
  if (!asked) return names.slice(0, limit).map(([name, facts]) => ({ name, facts, match: "start" }));
  const ways = [["exact", (name) => name === asked], ["start", (name) => name.startsWith(asked)], ["word", (name) => name.includes(` ${asked}`)], ["inside", (name) => name.includes(asked)]];
  const found = new Map();
  for (const [match, fits] of ways) {
    for (const [name, facts] of names) if (!found.has(name) && fits(plainly(name))) found.set(name, { name, facts, match });
  }
  if (!found.size) {
    const allowed = Math.floor(asked.length / 4);
    names.map(([name, facts]) => [slips(asked, plainly(name).slice(0, asked.length + 4)), name, facts]).filter(([missed]) => allowed && missed <= allowed)
      .sort((a, b) => a[0] - b[0]).forEach(([, name, facts]) => found.set(name, { name, facts, match: "similar" }));
  }
  return [...found.values()].slice(0, limit);
}

// Answers are kept as [answer, score, probability, split] to keep the file small.
function expanded([head, relation, tail], answers) {
  return answers.map(([answer, score, probability, known = null]) => ({
    answer, head: head ?? answer, relation: relation ?? answer, tail: tail ?? answer, score, probability, known,
  }));
}

export function fileSource(data) {
  const of = (run) => data.held[run];
  const part = (run, kind, key, what) => {
    if (!Object.hasOwn(of(run)[kind], key)) throw new LeftOut(what);
    return of(run)[kind][key];
  };
  const listed = (run, name) => {
    const i = of(run).entities.findIndex(([one]) => one === name);
    if (i < 0) throw new LeftOut(`“${name}”`);
    return i;
  };
  const found = (run, i) => ({ id: of(run).ids[i], name: of(run).entities[i][0], facts: of(run).entities[i][1] });
  return {
    live: false,
    made: data.made,
    leftOut: (run) => of(run).left_out,
    holdsComponent: (run, i) => Object.hasOwn(of(run).points, i),
    runs: async () => data.runs,
    entities: async (run, q, limit) => ({ found: searched(of(run).entities, q, limit) }),
    relations: async (run, q, limit) => ({ found: searched(of(run).relations, q, limit) }),
    facts: async (run, entity, limit, offset) => {
      const { entities, relations, facts } = of(run);
      const i = listed(run, entity);
      const about = facts.filter(([head, , tail]) => head === i || tail === i).map(([head, relation, tail, split]) => ({
        head: entities[head][0], relation: relations[relation][0], tail: entities[tail][0], split: ["train", "valid", "test"][split],
      }));
      return { total: about.length, facts: about.slice(offset, offset + limit) };
    },
    suggestions: async (run, entity) => {
      const suggested = part(run, "suggestions", entity, `What the model would add to “${entity}”`);
      return { suggested: suggested.map((group) => ({ ...group, answers: expanded(group.missing === "tail" ? [entity, group.relation, null] : [null, group.relation, entity], group.answers) })) };
    },
    neighbours: async (run, entity) => ({ neighbours: part(run, "neighbours", entity, `What is near “${entity}”`).map(([name, distance]) => ({ name, distance })) }),
    explain: async (run, { head, relation, tail }) => part(run, "reasons", JSON.stringify([head, relation, tail]), "The reasons for this fact"),
    relation: async (run, relation) => part(run, "details", relation, `“${relation}”`),
    compare: async (first, second) => {
      const key = JSON.stringify([first, second]);
      if (!Object.hasOwn(data.compared, key)) throw new LeftOut("This comparison");
      return data.compared[key];
    },
    predict: async (run, { head = null, relation = null, tail = null, top, known }) => {
      const asked = [head, relation, tail];
      const answers = expanded(asked, part(run, "answers", JSON.stringify(asked), "The answer to this question"));
      return { answers: answers.filter((one) => known !== "drop" || one.known === null).slice(0, top) };
    },
    lookup: async (run, { ids = [], names = [] }) => ({
      entities: [...ids.map((id) => found(run, of(run).ids.indexOf(id))), ...names.map((name) => found(run, listed(run, name)))],
    }),
    points: async (run, { component }) => {
      const text = atob(part(run, "points", String(component), "This component"));
      return unpacked(Uint8Array.from(text, (letter) => letter.charCodeAt(0)).buffer);
    },
  };
}
