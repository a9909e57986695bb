// One component of the space with the entities in it.

import { combobox, entityOptions } from "./combobox.js";
import { announce, count, decimals, empty, failure, h, loading, several } from "./dom.js";
import { entityAddress, go, keep } from "./route.js";
import { scatter } from "./scatter.js";

const HUES = [[78, 121, 167], [225, 129, 44], [89, 161, 79], [200, 74, 80], [118, 183, 178], [176, 122, 161], [214, 175, 40], [156, 117, 95], [232, 124, 145], [96, 96, 170]];
const NONE = [150, 146, 138];
const [UNNAMED, FADED] = [90, 14]; // how solid points are that have no colour of their own, or are not chosen
const RAMP = [[48, 74, 140], [52, 132, 153], [88, 176, 128], [188, 196, 76], [240, 178, 50]]; // low to high

// The second ten are the first again, farther from the ground.
function hue(group) {
  if (group < 0 || group >= 2 * HUES.length) return NONE;
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
  return HUES[group % HUES.length].map((part) => (group < HUES.length ? part : Math.round(dark ? 128 + part / 2 : part * 0.62)));
}

function ramp(share) {
  const at = Math.max(0, Math.min(0.9999, share)) * (RAMP.length - 1);
  const i = Math.floor(at);
  return RAMP[i].map((part, k) => Math.round(part + (RAMP[i + 1][k] - part) * (at - i)));
}

export function space(page, params) {
  const { source, run } = page;
  const heading = h("h1", {}, "Space");
  if (!run.components.length) return h("article", {}, heading, empty("No components", `A model of kind ${run.kind} has no curved components to look at.`));
  const component = Math.max(1, Math.min(run.components.length, Number(params.component) || firstDisk(run)));
  const state = { run: run.name, component, colour: params.colour || "role", shape: params.shape, moved: params.moved, entity: params.entity, webgl: params.webgl };
  const again = (change) => go("space", { ...state, ...change });
  const legend = h("div", { class: "legend" });
  const about = h("p", { class: "muted small" });
  const chosen = h("div", { class: "chosen-entity", "aria-live": "polite" });
  const names = new Map();
  let points = null;
  let only = null;

  const name = async (i) => {
    const id = points.columns.id[i];
    if (!names.has(id)) names.set(id, source.lookup(run.name, { ids: [id] }).then(({ entities }) => entities[0].name));
    return names.get(id);
  };
  const picture = scatter({
    label: `Entities in component ${run.components[component - 1]}. Arrow keys move, plus and minus zoom, 0 goes back.`,
    webgl: params.webgl,
    hovered: (i, told) => { if (i >= 0) setTimeout(() => name(i).then(told, () => {}), 30); },
    picked: (i) => name(i).then((found) => mark(i, found)).catch(() => {}),
  });

  function mark(i, found) {
    picture.mark(i, found);
    state.entity = found;
    keep("space", state);
    const disk = points.view === "disk";
    chosen.replaceChildren(
      h("strong", {}, found),
      h("span", { class: "muted small" }, ` ${several(points.columns.facts[i], "fact", "facts")}, depth ${decimals(points.columns.depth[i], 2)}`),
      h("span", { class: "spring" }),
      disk ? h("button", { type: "button", class: "button button-small", onclick: () => picture.centreOn(i) }, "Move to the centre") : null,
      h("a", { class: "button button-small", href: entityAddress(run.name, found) }, "Open"));
    announce(found);
  }

  async function find(wanted) {
    const { entities } = await source.lookup(run.name, { names: [wanted] });
    const i = points.columns.id.indexOf(entities[0].id);
    if (i >= 0) mark(i, wanted);
    else chosen.replaceChildren(h("span", { class: "muted" }, `${wanted} is not among the ${count(points.count)} points drawn.`));
  }

  const place = h("div", { class: "canvas-box" }, loading("Placing the points"));
  load();

  async function load() {
    const wanted = { component, relation: params.shape, moved: params.moved ? "true" : null, group_by: state.colour.startsWith("by:") ? state.colour.slice(3) : null };
    try {
      points = await source.points(run.name, wanted);
    } catch (error) {
      place.replaceChildren(failure(error));
      return;
    }
    place.replaceChildren(picture.box,
      h("div", { class: "zooming" },
        h("button", { type: "button", class: "button button-icon", "aria-label": "Zoom in", onclick: () => picture.zoom(1.5) }, "+"),
        h("button", { type: "button", class: "button button-icon", "aria-label": "Zoom out", onclick: () => picture.zoom(1 / 1.5) }, "−"),
        h("button", { type: "button", class: "button button-small", onclick: () => { picture.reset(); } }, "Reset")));
    place.dataset.drawn = picture.box.kind;
    picture.show(points, colours());
    const part = points.count < points.entities ? `${count(points.count)} of ${count(points.entities)}` : count(points.count);
    about.textContent = `${part} entities. ${points.view === "disk" ? `Curvature ${decimals(points.curvature, 2)}; dotted circles are that far from the origin.` : "Rings show the ellipsoid that holds half of the entities."} ${state.colour === "role" ? "Colours are the relation an entity is most often in: → before its name for tails, behind it for heads. " : ""}These directions keep ${decimals(points.kept * 100, 0)}% of the squared length.`;
    showLegend();
    if (params.entity) find(params.entity).catch((error) => chosen.replaceChildren(h("span", { class: "muted" }, error.message)));
  }

  function shares() {
    const values = state.colour === "degree" ? Float32Array.from(points.columns.facts, (n) => Math.log1p(n)) : points.columns.depth;
    const sorted = Float32Array.from(values).sort();
    const [low, high] = [sorted[Math.floor(sorted.length * 0.01)], sorted[Math.floor(sorted.length * 0.99)]];
    return { of: (i) => (values[i] - low) / (high - low || 1), low, high };
  }

  function colours() {
    const found = new Uint8Array(4 * points.count);
    const continuous = state.colour === "depth" || state.colour === "degree" ? shares() : null;
    const hues = points.groups.map((_, i) => hue(i));
    const solid = points.count > 30000 ? 150 : points.count > 5000 ? 190 : 225;
    for (let i = 0; i < points.count; i += 1) {
      const group = points.columns.group[i];
      const named = continuous || (group >= 0 && group < 2 * HUES.length);
      const alpha = only === null || continuous ? (named ? solid : UNNAMED) : group === only ? solid : FADED;
      found.set([...(continuous ? ramp(continuous.of(i)) : hues[group] || NONE), alpha], 4 * i);
    }
    return found;
  }

  function showLegend() {
    legend.classList.toggle("continuous", state.colour === "depth" || state.colour === "degree");
    if (state.colour === "depth" || state.colour === "degree") {
      const { low, high } = shares();
      const said = state.colour === "degree" ? [count(Math.round(Math.expm1(low))), count(Math.round(Math.expm1(high)))] : [decimals(low, 2), decimals(high, 2)];
      legend.replaceChildren(h("span", { class: "small" }, said[0]), h("span", { class: "ramp", role: "img", "aria-label": "from low to high" }), h("span", { class: "small" }, said[1]));
      return;
    }
    legend.replaceChildren(...points.groups.map((group, i) => {
      const swatch = h("span", { class: "swatch", style: { background: `rgb(${hue(i)})` } });
      return h("button", {
        type: "button", class: "legend-item", "aria-pressed": String(only === i),
        onclick: () => { only = only === i ? null : i; picture.colour(colours()); showLegend(); },
      }, swatch, group);
    }));
  }

  const relationNames = h("optgroup", { label: "Tail of a relation" });
  const shapes = h("select", { class: "select", id: "shape", onchange: (event) => again({ shape: event.target.value, moved: event.target.value ? params.moved : null }) }, h("option", { value: "" }, "None"));
  const tints = h("select", { class: "select", id: "colour", onchange: (event) => again({ colour: event.target.value }) },
    [["role", "Role in the graph"], ["depth", "Depth"], ["degree", "Number of facts"]].map(([value, text]) => h("option", { value, selected: value === state.colour }, text)), source.live ? relationNames : null);
  if (source.live) {
    source.relations(run.name, "", 100).then(({ found }) => {
      const listed = found.map(({ name: relation }) => relation);
      const asked = [params.shape, state.colour.startsWith("by:") ? state.colour.slice(3) : null].filter((one) => one && !listed.includes(one));
      for (const relation of [...listed, ...new Set(asked)]) {
        shapes.append(h("option", { value: relation, selected: relation === params.shape }, relation));
        relationNames.append(h("option", { value: `by:${relation}`, selected: state.colour === `by:${relation}` }, relation));
      }
    }, () => {});
  }
  const held = run.components.map((_, i) => i + 1).filter((i) => source.live || source.holdsComponent(run.name, i));
  const step = (by) => again({ component: held[(held.indexOf(component) + by + held.length) % held.length] });
  const controls = h("div", { class: "controls" },
    h("div", {}, h("label", { class: "label", for: "component" }, "Component"),
      h("div", { class: "stepper" },
        h("button", { type: "button", class: "button button-icon", "aria-label": "Component before", onclick: () => step(-1) }, "‹"),
        h("select", { class: "select", id: "component", onchange: (event) => again({ component: event.target.value }) },
          held.map((i) => h("option", { value: i, selected: i === component }, run.components[i - 1]))),
        h("button", { type: "button", class: "button button-icon", "aria-label": "Next component", onclick: () => step(1) }, "›"))),
    h("div", {}, h("label", { class: "label", for: "colour" }, "Colour"), tints),
    source.live ? h("div", {}, h("label", { class: "label", for: "shape" }, "Shaped by"), shapes) : null,
    params.shape ? h("label", { class: "check" }, h("input", { type: "checkbox", checked: Boolean(params.moved), onchange: (event) => again({ moved: event.target.checked ? "1" : null }) }), " moved by it") : null,
    combobox({ label: "Find", placeholder: "An entity", options: entityOptions(source, run.name), chosen: ({ name: wanted }) => points && find(wanted).catch(() => {}) }));
  return h("article", {}, heading, controls, h("div", { class: "space-layout" }, place, h("div", { class: "space-side" }, chosen, about, legend)));
}

function firstDisk(run) {
  const i = run.components.findIndex((name) => name.startsWith("Q"));
  return i < 0 ? 1 : i + 1;
}
