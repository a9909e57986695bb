// Answers from what a report holds, in the forms of the service.

import { unpacked } from "./service.js";

class LeftOut extends Error {
  constructor(what) {
    super(`${what} is not in this file. The service has it: golde serve RUN`);
    this.title = "Left out";
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

export function fileSource(data) {
  const of = (run) => data.held[run];
  const part = (run, kind, key, what) => {
    const found = of(run)[kind];
    if (!found || !Object.hasOwn(found, key)) throw new LeftOut(what);
    return found[key];
  };
  const asked = async (find) => find();
  return {
    live: false,
    made: data.made,
    leftOut: (run) => of(run).left_out,
    runs: async () => data.runs,
    entities: async (run, q, limit) => ({ found: searched(of(run).entities, q, limit) }),
    relations: async (run, q, limit) => ({ found: searched(of(run).relations, q, limit) }),
    facts: (run, entity, limit, offset) => asked(() => {
      const { facts, total } = part(run, "facts", entity, `What is known of ${entity}`);
      return { total: offset + limit < facts.length ? total : Math.max(offset, facts.length), facts: facts.slice(offset, offset + limit).map(([head, relation, tail, split]) => ({ head, relation, tail, split })) };
    }),
    suggestions: (run, entity) => asked(() => part(run, "suggestions", entity, `What the model would add to ${entity}`)),
    neighbours: (run, entity) => asked(() => part(run, "neighbours", entity, `What is near ${entity}`)),
    explain: (run, { head, relation, tail }) => asked(() => part(run, "reasons", JSON.stringify([head, relation, tail]), "The reason for this fact")),
    relation: (run, relation) => asked(() => part(run, "details", relation, relation)),
    compare: (first, second) => asked(() => {
      const found = data.compared[JSON.stringify([first, second])];
      if (!found) throw new LeftOut("This comparison");
      return found;
    }),
    predict: (run, { head = null, relation = null, tail = null, top, known }) => asked(() => {
      const answers = part(run, "answers", JSON.stringify([head, relation, tail]), "The answer to this question");
      const kept = answers.filter((one) => known !== "drop" || one.known === null);
      return { answers: kept.slice(0, top) };
    }),
    lookup: (run, { ids = [], names = [] }) => asked(() => {
      const { numbers, entities } = of(run);
      const places = [...ids.map((id) => numbers.indexOf(id)), ...names.map((name) => entities.findIndex(([one]) => one === name))];
      return { entities: places.map((i) => { if (i < 0) throw new LeftOut("This name"); return { id: numbers[i], name: entities[i][0], facts: entities[i][1] }; }) };
    }),
    points: (run, { component }) => asked(() => {
      const text = atob(part(run, "points", String(component), "This component"));
      return unpacked(Uint8Array.from(text, (letter) => letter.charCodeAt(0)).buffer);
    }),
  };
}
