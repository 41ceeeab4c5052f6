// Curves as plain SVG: one small chart a metric, one line a run. Arrow keys and the pointer read a step off.

const WIDE = 300, HIGH = 142, LEFT = 40, BOTTOM = 18, ABOVE = 20;

const allPoints = (some) => some.flatMap((one) => one.series.flatMap((series) => series.points));

// A round number from `value` on: the scale of an axis that begins at 0.
function round(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].find((part) => part * unit >= value * 0.999);
}

// Charts that are read beside each other have one scale; every scale holds 0.
function scale(some) {
  const low = allPoints(some).reduce((least, [, value, bottom = value]) => Math.min(least, bottom), 0);
  const high = allPoints(some).reduce((most, [, value, , top = value]) => Math.max(most, top), 0);
  return [low && -round(-low), high || !low ? round(high || 1) : 0];
}

function chart(one, [low, high]) {
  const points = allPoints([one]);
  const steps = [...new Set(points.map(([step]) => step))].sort((a, b) => a - b);
  const first = steps[0], last = steps[steps.length - 1];
  const x = (step) => LEFT + ((WIDE - LEFT - 8) * (last > first ? (step - first) / (last - first) : 0.5));
  const y = (value) => ABOVE + (HIGH - BOTTOM - ABOVE) * (1 - (value - low) / (high - low));
  const path = (list) => list.map(([a, b], place) => `${place ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");

  const grid = [low, (low + high) / 2, high].map((value) => [
    el("line", { class: "grid", x1: LEFT, x2: WIDE - 8, y1: y(value), y2: y(value) }),
    el("text", { x: LEFT - 5, y: y(value) + 3.5, "text-anchor": "end" }, number(value))]);
  const ends = [...new Set([first, last])].map((step, place) => el("text", { x: x(step), y: HIGH - 4, "text-anchor": place ? "end" : first === last ? "middle" : "start" }, String(step)));
  const names = [el("text", { x: 0, y: 9 }, t(one.unit)), last > first ? el("text", { x: LEFT + (WIDE - LEFT - 8) / 2, y: HIGH - 4, "text-anchor": "middle" }, t("step")) : null];
  const lines = one.series.map(({ run, points: own }) => {
    const banded = own.filter((point) => point.length > 2);
    const around = [...banded.map(([step, , , top]) => [step, top]), ...banded.toReversed().map(([step, , bottom]) => [step, bottom])];
    const few = own.length < 4;
    return [around.length > 2 ? el("path", { class: `band run${run % 8}`, d: path(around) + "Z" }) : null,
      ...(few ? banded.map(([step, , bottom, top]) => el("line", { class: `bar run${run % 8}`, x1: x(step), x2: x(step), y1: y(bottom), y2: y(top) })) : []),
      el("path", { class: `curve run${run % 8}`, d: path(own) }),
      ...(few ? own.map(([step, value]) => el("circle", { class: `point run${run % 8}`, cx: x(step), cy: y(value), r: 2.6 })) : [])];
  });
  const cursor = el("line", { class: "cursor", y1: ABOVE, y2: HIGH - BOTTOM, x1: -9, x2: -9 });
  const reading = el("p", { class: "reading", "aria-live": "polite" });
  const ends_of = one.series.map(({ run, points: own }) => `${shared.runs[run].label}: ${number(own[0][1])} → ${number(own[own.length - 1][1])}`).join("; ");

  function read(place) {
    const step = steps[place];
    cursor.setAttribute("x1", x(step)); cursor.setAttribute("x2", x(step));
    const values = one.series.map(({ run, points: own }) => [run, own.find(([at]) => at === step)]).filter(([, found]) => found);
    reading.replaceChildren(`${t("step")} ${step} `, ...values.flatMap(([run, [, value, bottom, top]]) => [swatch(run), number(value) + (top === undefined ? " " : ` [${number(bottom)}, ${number(top)}] `)]));
  }
  let place = steps.length - 1;
  const drawing = el("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", tabindex: 0, "aria-label": `${label(one.title)}, ${t(one.unit)}. ${ends_of}`,
    onpointermove: (event) => {
      const box = drawing.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * WIDE;
      place = steps.reduce((best, step, number) => (Math.abs(x(step) - at) < Math.abs(x(steps[best]) - at) ? number : best), 0);
      read(place);
    },
    onkeydown: (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!move) return;
      event.preventDefault();
      read((place = Math.min(steps.length - 1, Math.max(0, place + move))));
    } }, grid, ends, names, lines, cursor);
  reading.append(...one.series.flatMap(({ run, points: own }) => [swatch(run), `${number(own[0][1])} → ${number(own[own.length - 1][1])} `]));
  return el("figure", {}, el("figcaption", { dir: "auto" }, said(label(one.title))), drawing, reading);
}

function curves() {
  const drawable = shared.charts.filter(isCurve), groups = [...new Set(drawable.map((one) => one.group))];
  const drawn = groups.map((group, place) => {
    const own = drawable.filter((one) => one.group === group), alike = /^(Reward|Validation)/.test(group);
    return fold(t(group), place < 3, el("div", { class: "charts" }, own.map((one) => chart(one, scale(alike ? own : [one])))));
  });
  const single = shared.charts.filter((one) => !isCurve(one));
  const numbers = single.length ? fold(t("Measured once: a single step draws no curve"), !drawn.length, once(single)) : null;
  return [drawn.length ? legend("training") : null, ...drawn, numbers];
}

const isCurve = (one) => new Set(allPoints([one]).map(([step]) => step)).size > 1;

// What was measured at one step alone, as a table: a chart of single dots shows nothing.
function once(some) {
  const runs = [...new Set(some.flatMap((one) => one.series.map(({ run }) => run)))];
  const cell = (one, run) => {
    const [point] = one.series.find((series) => series.run === run)?.points ?? [];
    return point ? number(point[1]) + (point.length > 2 ? ` [${number(point[2])}, ${number(point[3])}]` : "") : "–";
  };
  const head = ["what", ...runs.map((run) => (shared.runs.length > 1 ? shared.runs[run].label : "value")), "unit", "step"];
  return table([head, ...some.map((one) => [one.title, ...runs.map((run) => cell(one, run)), t(one.unit), String(allPoints([one])[0][0])])], t("Measured once: a single step draws no curve"));
}

function legend(kind) {
  const found = shared.runs.map((run, number) => [run, number]).filter(([run]) => run.kind === kind);
  return found.length > 1 ? el("p", { class: "legend" }, found.map(([run, number]) => [swatch(number), el("bdi", {}, said(runName(run.label))), " "])) : null;
}
