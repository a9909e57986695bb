// Many points on a canvas: a Poincaré disk to move about in, or three axes to turn. WebGL where there is one,
// plain drawing where not. Both place a point alike, so hovering needs no help of the graphics card.

import { h } from "./dom.js";

const VERTEX = `
attribute vec3 place; attribute vec4 colour;
uniform mat3 turn; uniform vec2 centre, offset, stretch; uniform float scale, pixels; uniform bool disk;
varying vec4 shade;
void main() {
  vec3 p = place;
  if (disk) { // z → (z − c) / (1 − c̄ z)
    vec2 n = p.xy - centre;
    vec2 d = vec2(1.0 - dot(centre, p.xy), -(centre.x * p.y - centre.y * p.x));
    p = vec3(vec2(n.x * d.x + n.y * d.y, n.y * d.x - n.x * d.y) / dot(d, d), 0.0);
  } else p = turn * p;
  gl_Position = vec4((p.xy * scale + offset) * stretch, 0.0, 1.0);
  gl_PointSize = pixels * (disk ? 1.0 : 1.0 + 0.35 * clamp(p.z, -1.0, 1.0));
  shade = vec4(colour.rgb, colour.a * (disk ? 1.0 : 0.8 + 0.2 * clamp(p.z, -1.0, 1.0)));
}`;

const FRAGMENT = `
precision mediump float; varying vec4 shade;
void main() {
  float far = length(gl_PointCoord - 0.5) * 2.0;
  float cover = 1.0 - smoothstep(0.8, 1.0, far);
  if (cover <= 0.0) discard;
  gl_FragColor = vec4(shade.rgb, 1.0) * shade.a * cover;
}`;

const DISTANCES = [0.5, 1, 2, 3, 4];
const ROUND = 3000; // points that are drawn one by one where there is no graphics card
const SOLID = 100; // less opaque points do not cover others where there is no graphics card
const NEAR = 14; // pixels within which a point is hovered

// webgl: "1" wants it in any case, "0" not at all; else where a graphics card does the work.
export function scatter({ label, hovered, picked, webgl }) {
  const back = h("canvas", { class: "layer", "aria-hidden": "true" });
  const front = h("canvas", { class: "layer", role: "application", tabindex: "0", "aria-label": label });
  const box = h("div", { class: "scatter" }, back, front);
  const wanted = webgl === "1" || (webgl !== "0" && hasCard());
  const gl = wanted ? back.getContext("webgl", { antialias: true, premultipliedAlpha: true }) : null;
  const plain = gl ? null : back.getContext("2d");
  const lines = front.getContext("2d");
  const program = gl ? linked(gl) : null;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let data = null;
  let seen = start();
  let asked = 0;
  let stale = true; // points have to be drawn anew, and not names alone
  let hover = -1;
  let [width, height] = [0, 0];
  let placedFor = null; // the state of the view that places were found for
  let marked = -1;
  let names = { hover: "", marked: "" };
  box.kind = gl ? "webgl" : "2d";

  function start() {
    return { scale: data ? data.fitting : 0.92, x: 0, y: 0, turn: [0.6, -0.35], centre: [0, 0] };
  }

  function matrix() {
    const [a, b] = seen.turn;
    const [ca, sa, cb, sb] = [Math.cos(a), Math.sin(a), Math.cos(b), Math.sin(b)];
    return [ca, sa * sb, sa * cb, 0, cb, -sb, -sa, ca * sb, ca * cb]; // by columns
  }

  // Where points are, in units of the view, before zoom; into arrays, since there may be many.
  function placedAll(m) {
    const { x, y, z, flat } = data;
    const [cx, cy] = seen.centre;
    for (let i = 0; i < x.length; i += 1) {
      if (data.disk) {
        const nx = x[i] - cx;
        const ny = y[i] - cy;
        const dx = 1 - cx * x[i] - cy * y[i];
        const dy = cy * x[i] - cx * y[i];
        const d = dx * dx + dy * dy;
        flat[2 * i] = (nx * dx + ny * dy) / d;
        flat[2 * i + 1] = (ny * dx - nx * dy) / d;
      } else {
        flat[2 * i] = m[0] * x[i] + m[3] * y[i] + m[6] * z[i];
        flat[2 * i + 1] = m[1] * x[i] + m[4] * y[i] + m[7] * z[i];
      }
    }
    placedFor = seen;
  }

  function placed(i) {
    if (placedFor !== seen) placedAll(matrix());
    return [data.flat[2 * i], data.flat[2 * i + 1]];
  }

  function screen([x, y]) {
    const unit = Math.min(width, height) / 2;
    return [width / 2 + (x * seen.scale + seen.x) * unit, height / 2 - (y * seen.scale + seen.y) * unit];
  }

  function draw() {
    stale = true;
    drawNames();
  }

  function drawNames() {
    if (asked) return;
    asked = requestAnimationFrame(() => { asked = 0; paint(); });
  }

  function fit() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    [width, height] = [box.clientWidth, box.clientHeight];
    for (const canvas of [back, front]) {
      const [wide, tall] = [Math.round(width * ratio), Math.round(height * ratio)];
      if (canvas.width === wide && canvas.height === tall) continue;
      [canvas.width, canvas.height] = [wide, tall];
      stale = true; // which has emptied it
    }
    return ratio;
  }

  function pointSize() {
    const base = data.x.length > 30000 ? 2.6 : data.x.length > 5000 ? 4 : data.x.length > 800 ? 5.5 : 8;
    return base * Math.min(2.2, Math.max(0.8, seen.scale ** 0.4));
  }

  function paint() {
    if (!data || !box.clientWidth) return;
    const ratio = fit();
    const m = matrix();
    if (stale && gl) paintFast(ratio, m);
    else if (stale) paintPlain(ratio);
    stale = false;
    lines.setTransform(ratio, 0, 0, ratio, 0, 0);
    lines.clearRect(0, 0, width, height);
    const style = getComputedStyle(box);
    if (data.disk) outlineDisk(style);
    else outlineEllipsoid(style, m);
    named(marked, names.marked, style, true);
    if (hover !== marked) named(hover, names.hover, style, false);
  }

  function paintFast(ratio, m) {
    gl.viewport(0, 0, back.width, back.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(program.program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const least = Math.min(back.width, back.height);
    gl.uniformMatrix3fv(program.turn, false, m);
    gl.uniform2f(program.centre, ...seen.centre);
    gl.uniform2f(program.offset, seen.x, seen.y);
    gl.uniform2f(program.stretch, least / back.width, least / back.height);
    gl.uniform1f(program.scale, seen.scale);
    gl.uniform1f(program.pixels, pointSize() * ratio);
    gl.uniform1i(program.disk, data.disk ? 1 : 0);
    gl.drawArrays(gl.POINTS, 0, data.x.length);
  }

  function paintPlain(ratio) {
    placed(0);
    if (data.x.length > ROUND) paintPixels(ratio);
    else paintRound(ratio);
  }

  function paintRound(ratio) {
    plain.setTransform(ratio, 0, 0, ratio, 0, 0);
    plain.clearRect(0, 0, width, height);
    const radius = pointSize() / 2;
    for (let i = 0; i < data.x.length; i += 1) {
      const [x, y] = screen(placed(i));
      const o = 4 * i;
      plain.fillStyle = `rgba(${data.colours[o]},${data.colours[o + 1]},${data.colours[o + 2]},${data.colours[o + 3] / 255})`;
      plain.beginPath();
      plain.arc(x, y, radius, 0, 2 * Math.PI);
      plain.fill();
    }
  }

  // Squares written straight into the picture: some twenty times as fast as to have them drawn.
  function paintPixels(ratio) {
    const image = plain.createImageData(back.width, back.height);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = new Uint32Array(data.colours.buffer);
    const size = Math.max(2, Math.round(pointSize() * ratio * 0.7));
    const [ox, oy] = screen([0, 0]);
    const unit = (Math.min(width, height) / 2) * seen.scale * ratio;
    const { flat } = data;
    for (let i = 0; i < colours.length; i += 1) {
      const left = Math.round(ox * ratio + flat[2 * i] * unit - size / 2);
      const top = Math.round(oy * ratio - flat[2 * i + 1] * unit - size / 2);
      if (left < 0 || top < 0 || left + size > back.width || top + size > back.height) continue;
      const behind = data.colours[4 * i + 3] < SOLID;
      for (let row = top; row < top + size; row += 1) {
        for (let at = row * back.width + left, end = at + size; at < end; at += 1) if (!behind || !pixels[at]) pixels[at] = colours[i];
      }
    }
    plain.putImageData(image, 0, 0);
  }

  function outlineDisk(style) {
    const [x, y] = screen([0, 0]);
    const unit = (Math.min(width, height) / 2) * seen.scale;
    lines.strokeStyle = style.getPropertyValue("--line-strong");
    lines.lineWidth = 1.2;
    circle(x, y, unit);
    lines.strokeStyle = style.getPropertyValue("--line");
    lines.lineWidth = 1;
    lines.setLineDash([2, 4]);
    const [cx, cy] = seen.centre;
    lines.fillStyle = style.getPropertyValue("--muted");
    lines.font = `11px ${style.fontFamily}`;
    for (const distance of DISTANCES) { // from the origin of the component
      const [ix, iy] = circleAbout([-cx, -cy], Math.tanh(distance / (2 * data.radius)));
      lines.fillText(String(distance), ix + 3, iy - 3);
    }
    lines.setLineDash([]);
  }

  // The hyperbolic circle of Euclidean radius r at the origin, after the origin has moved to o.
  function circleAbout([ox, oy], r) {
    const o2 = ox * ox + oy * oy;
    const d = 1 - r * r * o2;
    const [x, y] = screen([(ox * (1 - r * r)) / d, (oy * (1 - r * r)) / d]);
    const radius = ((r * (1 - o2)) / d) * seen.scale * (Math.min(width, height) / 2);
    circle(x, y, radius);
    return [x, y - radius];
  }

  function circle(x, y, radius) {
    lines.beginPath();
    lines.arc(x, y, radius, 0, 2 * Math.PI);
    lines.stroke();
  }

  function outlineEllipsoid(style, m) {
    lines.lineWidth = 1;
    const at = (p) => screen([m[0] * p[0] + m[3] * p[1] + m[6] * p[2], m[1] * p[0] + m[4] * p[1] + m[7] * p[2]]);
    const rings = [[0, 1, 2], [1, 2, 0], [0, 2, 1]];
    lines.strokeStyle = style.getPropertyValue("--line-strong");
    for (const [a, b] of rings) {
      lines.beginPath();
      for (let k = 0; k <= 64; k += 1) {
        const p = [0, 0, 0];
        p[a] = data.axes[a] * Math.cos((k / 32) * Math.PI);
        p[b] = data.axes[b] * Math.sin((k / 32) * Math.PI);
        const [x, y] = at(p);
        if (k) lines.lineTo(x, y);
        else lines.moveTo(x, y);
      }
      lines.stroke();
    }
    lines.fillStyle = style.getPropertyValue("--muted");
    lines.font = `12px ${style.fontFamily}`;
    ["1", "2", "3"].forEach((name, i) => {
      const p = [0, 0, 0];
      p[i] = data.axes[i] * 1.08;
      lines.fillText(name, ...at(p));
    });
  }

  function named(i, name, style, strong) {
    if (i < 0) return;
    const [x, y] = screen(placed(i));
    lines.strokeStyle = style.getPropertyValue("--text");
    lines.lineWidth = strong ? 2.5 : 1.5;
    circle(x, y, pointSize() / 2 + 3.5);
    if (!name) return;
    lines.font = `${strong ? 600 : 400} 13px ${style.fontFamily}`;
    const shown = name.length > 48 ? `${name.slice(0, 47)}…` : name;
    const wide = lines.measureText(shown).width + 14;
    const left = Math.max(4, Math.min(width - wide - 4, x + 10));
    const top = y < 36 ? y + 12 : y - 32;
    lines.fillStyle = style.getPropertyValue("--surface");
    lines.strokeStyle = style.getPropertyValue("--line-strong");
    lines.lineWidth = 1;
    lines.beginPath();
    if (lines.roundRect) lines.roundRect(left, top, wide, 24, 6);
    else lines.rect(left, top, wide, 24);
    lines.fill();
    lines.stroke();
    lines.fillStyle = style.getPropertyValue("--text");
    lines.fillText(shown, left + 7, top + 16.5);
  }

  function nearest(x, y) {
    const unit = (Math.min(width, height) / 2) * seen.scale;
    const [wx, wy] = [(x - screen([0, 0])[0]) / unit, -(y - screen([0, 0])[1]) / unit];
    if (placedFor !== seen) placedAll(matrix());
    const { flat, colours } = data;
    let best = (NEAR / unit) ** 2;
    let found = -1;
    for (let i = 0; i < flat.length / 2; i += 1) {
      const dx = flat[2 * i] - wx;
      const dy = flat[2 * i + 1] - wy;
      const far = dx * dx + dy * dy;
      if (far < best && colours[4 * i + 3] >= 40) { // not faded out by the legend
        best = far;
        found = i;
      }
    }
    return found;
  }

  function place(event) {
    const at = front.getBoundingClientRect();
    return [event.clientX - at.left, event.clientY - at.top];
  }

  function zoom(factor, [x, y] = [width / 2, height / 2]) {
    const unit = Math.min(width, height) / 2;
    const scale = Math.max(0.4, Math.min(400, seen.scale * factor));
    const [vx, vy] = [(x - width / 2) / unit, -(y - height / 2) / unit];
    const change = scale / seen.scale;
    seen = { ...seen, scale, x: vx - (vx - seen.x) * change, y: vy - (vy - seen.y) * change };
    draw();
  }

  function move(dx, dy, turning) {
    const unit = Math.min(width, height) / 2;
    if (turning && !data.disk) seen = { ...seen, turn: [seen.turn[0] + dx / 150, Math.max(-1.57, Math.min(1.57, seen.turn[1] - dy / 150))] };
    else seen = { ...seen, x: seen.x + dx / unit, y: seen.y - dy / unit };
    draw();
  }

  const pointers = new Map();
  let travelled = 0;
  front.addEventListener("pointerdown", (event) => {
    front.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    travelled = 0;
  });
  front.addEventListener("pointermove", (event) => {
    if (!data) return;
    const before = pointers.get(event.pointerId);
    if (!before) {
      setHover(nearest(...place(event)));
      return;
    }
    const now = [event.clientX, event.clientY];
    travelled += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
    if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const apart = (at) => Math.hypot(at[0] - other[0], at[1] - other[1]);
      zoom(apart(now) / Math.max(1, apart(before)));
    } else move(now[0] - before[0], now[1] - before[1], !event.shiftKey);
    pointers.set(event.pointerId, now);
  });
  front.addEventListener("pointerup", (event) => {
    pointers.delete(event.pointerId);
    if (travelled < 6 && data) {
      const found = nearest(...place(event));
      if (found >= 0) picked(found);
    }
  });
  front.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
  front.addEventListener("pointerleave", () => setHover(-1));
  front.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), place(event));
  }, { passive: false });
  front.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    if (event.key in steps) move(...steps[event.key], true);
    else if (event.key === "+" || event.key === "=") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else if (event.key === "0" || event.key === "Escape") reset();
    else return;
    event.preventDefault();
  });

  function setHover(i) {
    if (i === hover) return;
    hover = i;
    names.hover = "";
    front.style.cursor = i < 0 ? "grab" : "pointer";
    drawNames();
    hovered(i, (name) => { if (hover === i) { names.hover = name; drawNames(); } });
  }

  function reset() {
    seen = start();
    draw();
  }

  // Move a point of the disk to its centre along a geodesic.
  function centreOn(i) {
    const [from, to] = [seen.centre, i < 0 ? [0, 0] : [data.x[i], data.y[i]]];
    const begun = performance.now();
    const step = (now) => {
      const part = still ? 1 : Math.min(1, Math.max(0, (now - begun) / 450));
      const eased = part * part * (3 - 2 * part);
      seen = { ...start(), scale: seen.scale, centre: [from[0] + (to[0] - from[0]) * eased, from[1] + (to[1] - from[1]) * eased] };
      draw();
      if (part < 1) requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  const watch = new ResizeObserver(draw);
  watch.observe(box);

  return {
    box,
    draw,
    reset,
    zoom,
    centreOn,
    show(points, colours) {
      const disk = points.view === "disk";
      const { x, y, z } = points.columns;
      const far = disk ? 1 : extent(x, y, z);
      const scaled = (column) => (far === 1 ? column : Float32Array.from(column, (value) => value / far));
      data = { disk, x: scaled(x), y: scaled(y), z: disk ? null : scaled(z), colours, axes: disk ? null : points.semi_axes.map((axis) => axis / far) };
      data.flat = new Float32Array(2 * x.length);
      data.radius = disk ? 1 / Math.sqrt(-points.curvature) : 1; // √β: distances in the disk are its multiples
      data.fitting = disk ? Math.max(0.92, 0.85 / (extent(x, y) || 1)) : 0.92;
      seen = start();
      [hover, marked, names] = [-1, -1, { hover: "", marked: "" }];
      if (gl) upload(gl, program, data);
      draw();
    },
    colour(colours) {
      data.colours = colours;
      if (gl) uploadColours(gl, program, colours);
      draw();
    },
    mark(i, name) {
      [marked, names.marked] = [i, name];
      drawNames();
    },
  };
}

// Whether WebGL is more than a program that stands in for a graphics card: that is slower than plain drawing.
function hasCard() {
  const gl = document.createElement("canvas").getContext("webgl", { failIfMajorPerformanceCaveat: true });
  if (!gl) return false;
  const told = gl.getExtension("WEBGL_debug_renderer_info");
  const name = told ? gl.getParameter(told.UNMASKED_RENDERER_WEBGL) : gl.getParameter(gl.RENDERER);
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return !/swiftshader|llvmpipe|software|basic render/i.test(name);
}

// Nearly all points are within 1 of the origin after this.
function extent(x, y, z) {
  const lengths = Float32Array.from(x, (value, i) => Math.hypot(value, y[i], z ? z[i] : 0)).sort();
  return lengths[Math.floor(lengths.length * 0.995)] || 1;
}

function linked(gl) {
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
  const uniforms = Object.fromEntries(["turn", "centre", "offset", "stretch", "scale", "pixels", "disk"].map((name) => [name, gl.getUniformLocation(program, name)]));
  return { program, ...uniforms, places: gl.createBuffer(), tints: gl.createBuffer() };
}

function upload(gl, program, { x, y, z, colours }) {
  const places = new Float32Array(3 * x.length);
  for (let i = 0; i < x.length; i += 1) {
    places[3 * i] = x[i];
    places[3 * i + 1] = y[i];
    if (z) places[3 * i + 2] = z[i];
  }
  gl.bindBuffer(gl.ARRAY_BUFFER, program.places);
  gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
  const place = gl.getAttribLocation(program.program, "place");
  gl.enableVertexAttribArray(place);
  gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 0, 0);
  uploadColours(gl, program, colours);
}

function uploadColours(gl, program, colours) {
  gl.bindBuffer(gl.ARRAY_BUFFER, program.tints);
  gl.bufferData(gl.ARRAY_BUFFER, colours, gl.STATIC_DRAW);
  const colour = gl.getAttribLocation(program.program, "colour");
  gl.enableVertexAttribArray(colour);
  gl.vertexAttribPointer(colour, 4, gl.UNSIGNED_BYTE, true, 0, 0);
}
