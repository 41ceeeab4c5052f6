// Curves as plain SVG: one small chart a metric, one line a run. Arrow keys and the pointer read a step off.

const WIDE = 300, HIGH = 130, LEFT = 40, BOTTOM = 18, ABOVE = 8;

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
  const label = one.series.map(({ run, points: own }) => `${shared.runs[run].label}: ${number(own[0][1])} → ${number(own[own.length - 1][1])}`).join("; ");

  function read(place) {
    const step = steps[place];
    cursor.setAttribute("x1", x(step)); cursor.setAttribute("x2", x(step));
    const values = one.series.map(({ run, points: own }) => [run, own.find(([at]) => at === step)]).filter(([, found]) => found);
    reading.replaceChildren(`${t("step")} ${step} `, ...values.flatMap(([run, [, value, bottom, top]]) => [swatch(run), number(value) + (top === undefined ? " " : ` [${number(bottom)}, ${number(top)}] `)]));
  }
  let place = steps.length - 1;
  const drawing = el("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", tabindex: 0, "aria-label": `${t(one.title)}. ${label}`,
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
    } }, grid, ends, lines, cursor);
  reading.append(...one.series.flatMap(({ run, points: own }) => [swatch(run), number(own[own.length - 1][1]) + " "]));
  return el("figure", {}, el("figcaption", { dir: "auto" }, said(t(one.title).replaceAll("_", " "))), drawing, reading);
}

function curves() {
  const groups = [...new Set(shared.charts.map((one) => one.group))];
  const drawn = groups.map((group, place) => {
    const own = shared.charts.filter((one) => one.group === group), alike = /^(Reward|Validation)/.test(group);
    return fold(t(group), place < 3, el("div", { class: "charts" }, own.map((one) => chart(one, scale(alike ? own : [one])))));
  });
  const without = shared.absent.length ? el("p", { class: "quiet" }, t("Not written by these runs:") + " " + shared.absent.map(t).join(", ")) : null;
  return [legend("training"), ...drawn, without];
}

function legend(kind) {
  const found = shared.runs.map((run, number) => [run, number]).filter(([run]) => run.kind === kind);
  return found.length > 1 ? el("p", { class: "legend" }, found.map(([run, number]) => [swatch(number), el("bdi", {}, said(run.label)), " "])) : null;
}
