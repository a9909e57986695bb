// The state of the page is in its address: #view?name=value&…

export const VIEWS = ["explore", "ask", "relations", "space", "compare"];

export function here() {
  const [view, query = ""] = location.hash.slice(1).split("?", 2);
  const params = Object.fromEntries(new URLSearchParams(query));
  return { view: VIEWS.includes(view) ? view : "explore", params };
}

export function address(view, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const query = new URLSearchParams(given).toString();
  return query ? `#${view}?${query}` : `#${view}`;
}

export function go(view, params) {
  const to = address(view, params);
  if (to !== location.hash) location.hash = to;
}

// Change the address without a new entry in the history, and without drawing anew.
export function keep(view, params) {
  history.replaceState(null, "", address(view, params));
}

export function entityAddress(run, name) {
  return address("explore", { run, entity: name });
}
