// Small drawings of a relation's map. Every one has its figures in words for those who cannot see it.

import { decimals, h, s } from "./dom.js";

const WIDTH = 360;
const HEIGHT = 120;

function frame(label, parts, height = HEIGHT) {
  return s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${height + 22}`, role: "img", "aria-label": label }, parts);
}

function words(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)];
  return `from ${decimals(sorted[0], 2)} to ${decimals(sorted[sorted.length - 1], 2)}, median ${decimals(middle, 2)}`;
}

// How many angles lie in each tenth of a half turn.
export function spectrum(angles) {
  const bins = 36;
  const counts = new Array(bins).fill(0);
  for (const angle of angles) counts[Math.min(bins - 1, Math.floor((angle / 180) * bins))] += 1;
  const most = Math.max(...counts, 1);
  const step = WIDTH / bins;
  return frame(`Rotation angles in degrees, ${words(angles)}`, [
    s("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }),
    counts.map((n, i) => s("rect", { class: "chart-bar", x: i * step + 1, width: step - 2, y: HEIGHT - (n / most) * (HEIGHT - 8), height: (n / most) * (HEIGHT - 8), rx: 1.5 })),
    [0, 45, 90, 135, 180].map((angle) => s("text", { class: "tick", x: (angle / 180) * WIDTH, y: HEIGHT + 16, "text-anchor": angle === 0 ? "start" : angle === 180 ? "end" : "middle" }, `${angle}°`)),
  ]);
}

// One bar for each component; from = where bars stand on.
export function bars(name, values, from = 0) {
  const lowest = Math.min(from, ...values);
  const highest = Math.max(from, ...values);
  const span = highest - lowest || 1;
  const y = (value) => 6 + ((highest - value) / span) * (HEIGHT - 12);
  const step = WIDTH / values.length;
  const width = Math.min(28, Math.max(1, step - 3));
  return frame(`${name} by component, ${words(values)}`, [
    values.map((value, i) => {
      const [top, bottom] = [y(Math.max(value, from)), y(Math.min(value, from))];
      return s("rect", { class: "chart-bar", x: i * step + (step - width) / 2, width, y: top, height: Math.max(1.5, bottom - top), rx: 1.5 },
        s("title", {}, `component ${i + 1}: ${decimals(value, 3)}`));
    }),
    s("line", { class: "axis", x1: 0, x2: WIDTH, y1: y(from), y2: y(from) }),
    s("text", { class: "tick", x: 0, y: HEIGHT + 16 }, `component 1 … ${values.length}`),
    s("text", { class: "tick", x: WIDTH, y: HEIGHT + 16, "text-anchor": "end" }, `${decimals(lowest, 2)} … ${decimals(highest, 2)}`),
  ]);
}

// Semi-axes 1/√p of each component as an ellipse of its longest and shortest.
export function ellipses(weights) {
  const shown = weights.slice(0, 12);
  const step = WIDTH / Math.max(shown.length, 6);
  const axes = shown.map((p) => p.map((w) => 1 / Math.sqrt(w)).sort((a, b) => b - a));
  const longest = Math.max(...axes.map((each) => each[0]));
  const stretch = axes.map((each) => each[0] / each[each.length - 1]);
  const height = step + 8;
  return frame(`Longest and shortest semi-axis by component; the stretch is ${words(stretch)}`, [
    axes.map((each, i) => {
      const unit = (step / 2 - 2) / longest;
      return s("ellipse", { class: "chart-outline", cx: i * step + step / 2, cy: height / 2, rx: each[0] * unit, ry: each[each.length - 1] * unit },
        s("title", {}, `component ${i + 1}: stretch ${decimals(stretch[i], 2)}`));
    }),
    s("text", { class: "tick", x: 0, y: height + 16 }, shown.length < weights.length ? `components 1 … ${shown.length} of ${weights.length}` : `component 1 … ${shown.length}`),
    s("text", { class: "tick", x: WIDTH, y: height + 16, "text-anchor": "end" }, `stretch ${decimals(Math.min(...stretch), 2)} … ${decimals(Math.max(...stretch), 2)}`),
  ], height);
}

export function figure(title, caption, drawing) {
  return h("figure", { class: "figure-box" }, h("figcaption", {}, h("strong", {}, title), h("span", { class: "muted small" }, caption)), drawing);
}
