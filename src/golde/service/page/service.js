// Questions to the service, over HTTP.

const TOKEN = "golde.token";

export class Refused extends Error {
  constructor(status, body) {
    const told = body && body.error ? body.error : {};
    super(told.message || `the service answered ${status}`);
    this.status = status;
    this.code = told.code || "unknown";
    this.suggestions = told.suggestions || [];
  }
}

async function fetched(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const gone = new Error("The service does not answer. Is “golde serve” still running?");
    gone.title = "No connection";
    throw gone;
  }
  if (answer.ok) return answer;
  throw new Refused(answer.status, await answer.json().catch(() => null));
}

export function tokenInUse() {
  try {
    return Boolean(sessionStorage.getItem(TOKEN));
  } catch {
    return false; // pages from files may have no store
  }
}

export function useToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

export function httpSource() {
  const api = "/api/v1";
  const of = (run) => `${api}/runs/${encodeURIComponent(run)}`;
  const get = async (path, params, signal) => {
    const given = Object.entries(params || {}).filter(([, value]) => value !== null && value !== undefined && value !== "");
    return (await fetched(`${path}?${new URLSearchParams(given)}`, { signal })).json();
  };
  const post = async (path, body) =>
    (await fetched(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) })).json();
  return {
    live: true,
    runs: () => get(`${api}/runs`),
    entities: (run, q, limit, signal) => get(`${of(run)}/entities`, { q, limit }, signal),
    relations: (run, q, limit, signal) => get(`${of(run)}/relations`, { q, limit }, signal),
    facts: (run, entity, limit, offset) => get(`${of(run)}/facts`, { entity, limit, offset }),
    suggestions: (run, entity) => get(`${of(run)}/suggestions`, { entity }),
    neighbours: (run, entity) => get(`${of(run)}/neighbours`, { entity, top: 12 }),
    predict: (run, question) => post(`${of(run)}/predict`, question),
    explain: (run, fact) => post(`${of(run)}/explain`, fact),
    relation: (run, relation) => get(`${of(run)}/relation`, { relation }),
    lookup: (run, wanted) => post(`${of(run)}/lookup`, wanted),
    compare: (first, second, split) => post(`${api}/compare`, { first, second, split }),
    points: async (run, wanted) => {
      const given = Object.entries({ ...wanted, format: "binary" }).filter(([, value]) => value !== null && value !== undefined && value !== "");
      const answer = await fetched(`${of(run)}/points?${new URLSearchParams(given)}`);
      return unpacked(await answer.arrayBuffer());
    },
  };
}

// A header and columns in one piece; see golde.service.packing.
export function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const columns = {};
  header.columns.forEach(({ name, type }, i) => {
    const kind = type === "int32" ? Int32Array : Float32Array;
    columns[name] = new kind(buffer, 8 + length + 4 * header.count * i, header.count);
  });
  return { ...header, columns };
}
