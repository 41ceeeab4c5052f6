// The whole page, drawn again when the language changes.

const part = (id, title, ...children) => el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, t(title)), ...children);
// A table whose rows are episodes leads to them.
const linked = (cells) => {
  const place = cells[0].indexOf("id");
  return place < 0 ? cells : cells.map((row, at) => row.map((cell, number) => (at && number === place && rowByKey.has(`${cell}#0`) ? el("a", { href: address(rowByKey.get(`${cell}#0`)) }, said(cell)) : cell)));
};
const tables = (found, caption) => Object.entries(found).map(([title, cells]) => (title ? fold(said(t(title)), false, table(linked(cells), `${caption}: ${t(title)}`)) : table(cells, caption)));
const named = (run, ...children) => [shared.runs.length > 1 ? el("h3", {}, swatch(shared.runs.indexOf(run)), el("bdi", {}, said(runName(run.label)))) : null, ...children];

// Facts of all runs by section: a column a run, what differs first.
function overview() {
  const sections = [...new Set(shared.runs.flatMap((run) => run.facts.map(([section]) => section)))];
  return sections.map((section) => {
    const told = shared.runs.map((run) => new Map(run.facts.filter(([where]) => where === section).map(([, name, value]) => [name, value])));
    const asked = shared.runs.map((run, number) => number).filter((number) => told[number].size);
    const names = [...new Set(asked.flatMap((number) => [...told[number].keys()]))];
    const differs = (name) => new Set(asked.filter((number) => told[number].has(name)).map((number) => told[number].get(name))).size > 1;
    const sorted = [...names.filter(differs), ...names.filter((name) => !differs(name))];
    const head = ["name", ...asked.map((number) => (shared.runs.length > 1 ? el("span", {}, swatch(number), el("bdi", {}, said(runName(shared.runs[number].label)))) : "value"))];
    const cells = [head, ...sorted.map((name) => [name, ...asked.map((number) => told[number].get(name) ?? "–")])];
    const marked = new Set(sorted.map((name, place) => (differs(name) ? place + 1 : 0)));
    return fold(t(section), section === "Run", table(cells, t(section), { marked }));
  });
}

const between = (bounds) => `${t("95 % interval")} ${bounds.join(` ${t("to")} `)}`;

// One answer: the verdict, the two numbers, how sure they are, and what it took. Its numbers are texts already.
function card(one) {
  const changed = one.change !== undefined, unit = label(one.measure).includes(t(one.unit)) ? "" : `${language === "zh" ? "，" : ", "}${t(one.unit)}`;
  const title = one.title.length > 1 ? against(one.title) : one.title.filter(Boolean).map((name) => el("bdi", {}, said(runName(name))));
  const facts = one.facts.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => [name, number(value)]);
  const sure = [one.bounds ? between(one.bounds) : null, one.bounds && one.p ? `${t("randomisation test")} p = ${one.p}` : null].filter(Boolean).join(language === "zh" ? "；" : "; ");
  const brackets = language === "zh" ? ["（", "）"] : [" (", ")"];
  return el("article", { class: `card ${one.tone.replace(" ", "-")}` },
    title.length ? el("h3", {}, swatch(one.run), title) : null,
    one.verdict ? el("p", { class: "verdict" }, t(one.verdict)) : null,
    one.state ? el("p", { class: "warning", dir: "auto" }, said(one.state)) : null,
    one.after === undefined ? null : [
      el("p", { class: "big" }, changed ? [el("span", { class: "from" }, one.before), " → "] : null, el("b", {}, one.after)),
      el("p", { class: "quiet" }, label(one.measure) + unit),
      changed ? el("p", {}, `${t("change")} ${one.change}`, sure ? brackets.join(sure) : "") : sure ? el("p", {}, sure) : null],
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, t(name)), el("dd", {}, value)))));
}

// The kinds of failure of every evaluation; each kind and each number shows its episodes.
function failures() {
  const runs = [...new Set(shared.failures.flatMap(([, counts]) => Object.keys(counts)))];
  const shows = (name, text, run = "") => el("button", { type: "button", class: "shows", title: meaning(name), onclick: () => {
    Object.assign(chosen, { failure: name, run });
    render();
    document.getElementById("episodes").scrollIntoView();
  } }, text);
  const head = ["kind", ...runs.map((run) => shared.runs[run].label)];
  const body = shared.failures.map(([name, counts]) => [shows(name, label(name)), ...runs.map((run) => (counts[run] === undefined ? "–" : shows(name, counts[run], run)))]);
  return [el("p", { class: "quiet" }, t("Episodes, and their share in points. A click shows them.")), table([head, ...body], t("Why it fails"))];
}

function sections() {
  const finished = shared.runs.filter((run) => Object.keys(run.tables).length);
  return [
    part("result", shared.results.some((one) => one.change !== undefined) ? "Did it get better?" : "Result", el("div", { class: "cards" }, shared.results.map(card))),
    shared.missing.length ? part("missing", "What is missing", el("ul", {}, shared.missing.map((line) => el("li", { dir: "auto" }, said(line))))) : null,
    shared.differences.length ? part("differences", "Differences", shared.differences.map((one) => [el("h3", {}, against(one.sides)), el("ul", { class: "lines" }, one.facts.map((line) => el("li", { dir: "auto" }, said(line)))), tables(one.tables, one.sides.map(runName).join(` ${t("against")} `))])) : null,
    shared.failures.length ? part("failures", "Why it fails", failures()) : null,
    shared.charts.length ? part("curves", "Curves", curves()) : null,
    finished.length ? part("scores", "Scores", el("p", { class: "quiet" }, t("Points are 100 times the share or score; the brackets hold 95 % intervals.")), finished.map((run) => named(run, tables(run.tables, `${t("Scores")}: ${runName(run.label)}`)))) : null,
    shared.total && part("unscored", "Unscored episodes", shared.unscored.length > 1 ? table(shared.unscored.map((row, at) => (at ? [row[0] || "–", label(row[1]), ...row.slice(2)] : row)).map((row) => (language === "zh" ? row.slice(0, 4) : row)), t("Unscored episodes")) : el("p", { class: "quiet" }, t("Every episode has a score, and no token was dropped."))),
    part("overview", "What was run", overview()),
    part("episodes", "Episodes", sampled(), shared.total ? list() : [el("p", { class: "quiet" }, t("There are no episodes.")), el("div", { id: "one" })]),
  ].filter(Boolean);
}

function sampled() {
  if (episodes.length === shared.total) return null;
  const share = `${number(episodes.length)} ${t("of")} ${number(shared.total)} ${t("episodes in all")}`;
  return el("p", { class: "warning" }, `${share}${language === "zh" ? "：" : ": "}${t("a sample by task, the same tasks of every run.")}`);
}

// What this page is about, in a line: of which agent, and since when.
function about() {
  const facts = new Map(shared.runs.flatMap((run) => run.facts.filter(([section]) => section === "Run").map(([, name, value]) => [name, value])));
  const kinds = [...new Set(shared.runs.map((run) => t(run.kind)))].join(" + ");
  return said([t("Report"), kinds, `${t("agent")}: ${facts.get("agent") || "–"}`, facts.get("when"), shared.as_of && `${t("as of")} ${shared.as_of}`].filter(Boolean).join(" · "));
}

function render() {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  rows.forEach((row) => { row.item = null; });
  const made = sections();
  const other = el("button", { type: "button", onclick: () => { language = language === "zh" ? "en" : "zh"; render(); } }, language === "zh" ? "English" : "中文");
  other.lang = language === "zh" ? "en" : "zh-CN";
  const links = made.map((one) => [el("a", { href: `#${one.id}` }, one.firstChild.textContent), " "]);
  document.getElementById("top").replaceChildren(el("a", { class: "skip", href: "#episodes" }, t("To the episodes")), el("p", { class: "over" }, about()), el("h1", { dir: "auto" }, said(shared.title)), el("nav", { "aria-label": t("Sections") }, links, other));
  document.getElementById("main").replaceChildren(...made);
  open(false);
}

addEventListener("hashchange", () => open(true));
addEventListener("resize", () => drawRows());
addEventListener("keydown", (event) => {
  const typing = event.target.matches?.("input, select, textarea");
  if (event.key === "Escape") { if (typing) event.target.blur(); else if (location.hash.startsWith("#episode=")) location.hash = "#episodes"; return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const move = { j: 1, k: -1 }[event.key];
  if (event.key === "/") { event.preventDefault(); document.getElementById("by-text").focus(); }
  if (move) {
    const now = kept.indexOf(opened()), next = now < 0 ? kept[0] : kept[now + move];
    if (next) location.hash = address(next);
  }
});

render();
if (location.hash.startsWith("#episode=")) open(true);
window.report = { episodes, runs: shared.runs, ready: true };
