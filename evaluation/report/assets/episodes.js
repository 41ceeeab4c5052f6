// The list of episodes, its filters, and one episode in full. A row is a task and sample, with every run that played it.

const rows = [...Map.groupBy(episodes, (episode) => `${episode.id.toWellFormed()}#${episode.sample ?? ""}`)].map(([key, members]) => ({ key, members, hay: null, item: null }));
const rowByKey = new Map(rows.map((row) => [row.key, row]));
const ends = (episode) => episode.unscored || episode.stop_reason || "–";
const kind = (episode) => [episode.mode, episode.task_type].filter(Boolean).join(" · ") || "–";
const kindLabel = (name) => name.split(" · ").map(label).join(" · ");
const rewardsOf = (members) => members.map((one) => one.reward).filter((value) => typeof value === "number");
// Of the chosen run alone, where one is chosen.
const rewards = (row) => rewardsOf(row.members.filter((one) => chosen.run === "" || one.run === Number(chosen.run)));
const ORDERS = {
  "order of the file": null,
  "worst first": (row) => Math.min(...rewards(row)),
  "best first": (row) => -Math.max(...rewards(row)),
  "with messages first": (row) => Math.min(...row.members.map((one) => (one.shown.length ? 0 : 2) - (one.tokens.length ? 1 : 0))),
  "most changed first": (row) => Math.min(...rewardsOf(row.members)) - Math.max(...rewardsOf(row.members)),
};
const chosen = { run: "", type: "", end: "", failure: "", low: "", high: "", text: "", order: episodes.some((one) => !one.shown.length) ? "with messages first" : "order of the file" };

function passes(row) {
  const low = chosen.low === "" ? -Infinity : Number(chosen.low), high = chosen.high === "" ? Infinity : Number(chosen.high);
  const bounded = low !== -Infinity || high !== Infinity;
  const fits = (one) => (!chosen.run || one.run === Number(chosen.run)) && (!chosen.type || kind(one) === chosen.type) && (!chosen.end || ends(one) === chosen.end) && (!chosen.failure || one.failure === chosen.failure)
    && (!bounded || (typeof one.reward === "number" && one.reward >= low && one.reward <= high));
  if (!row.members.some(fits)) return false;
  if (!chosen.text) return true;
  row.hay ??= texts(row.members).toLowerCase();
  return row.hay.includes(chosen.text.toLowerCase());
}

function texts(value) {
  const held = [];
  JSON.stringify(value, (name, part) => { if (typeof part === "string") held.push(part); return part; });
  return held.join("\n");
}

function found() {
  const kept = rows.filter(passes), order = ORDERS[chosen.order];
  if (!order) return kept;
  return kept.map((row) => [rewards(row).length ? order(row) : Infinity, row]).sort(([a], [b]) => (a === b ? 0 : a - b)).map(([, row]) => row);
}

const address = (row) => `#episode=${encodeURIComponent(row.members[0].id.toWellFormed())}&sample=${row.members[0].sample ?? ""}`;
const asked = (one) => String(one.question || "") || (one.mode ? `${t("step")} ${one.step} · ${one.id}` : one.id);

function item(row) {
  const [first] = row.members;
  return el("li", {}, el("a", { href: address(row) },
    el("span", { class: "asked", dir: "auto" }, said(String(asked(first)).slice(0, 160))),
    el("span", { class: "values" }, row.members.map((one) => [shared.runs.length > 1 ? swatch(one.run) : null, el("b", { class: one.reward === null || one.reward === undefined ? "none" : undefined }, number(one.reward)), " "])),
    el("span", { class: "kind", dir: "auto" }, said([kindLabel(kind(first)), ...(first.mode ? [`${t("step")} ${[...new Set(row.members.map((one) => one.step))].join(", ")}`] : []), ...new Set(row.members.map((one) => label(ends(one)))), ...new Set(row.members.map((one) => one.failure).filter(Boolean).map(label))].join(" · ").slice(0, 120)))));
}

// The rows that pass, of which those in sight and SPARE around them are in the document: scrolling costs the same,
// however many there are. A row with the focus stays.
let kept = [];
const ROW = 4.1, SPARE = 6; // the height of a row in rem

function drawRows() {
  const box = document.getElementById("list");
  if (!box) return;
  const items = box.firstChild, high = items.offsetHeight / kept.length, now = opened();
  const from = Math.max(0, Math.floor(box.scrollTop / high) - SPARE), end = Math.min(kept.length, Math.ceil((box.scrollTop + box.clientHeight) / high) + SPARE);
  for (const node of [...items.children]) if ((node.place < from || node.place >= end) && !node.contains(document.activeElement)) node.remove();
  for (let place = from, next = items.firstChild; place < end; place++) {
    while (next && next.place < place) next = next.nextSibling;
    if (next?.place !== place) items.insertBefore(placed(kept[place], place, now), next);
  }
}

function placed(row, place, now) {
  const node = (row.item ??= item(row));
  node.place = place;
  node.style.top = `${place * ROW}rem`;
  node.setAttribute("aria-posinset", place + 1);
  node.setAttribute("aria-setsize", kept.length);
  return current(node, row === now);
}

function current(node, is) {
  if (is) node.firstChild.setAttribute("aria-current", "true"); else node.firstChild.removeAttribute("aria-current");
  return node;
}

function list() {
  const count = el("p", { class: "quiet count", role: "status" }), items = el("ol", { "aria-label": t("Episodes") }), box = el("div", { id: "list", onscroll: drawRows }, items), one = el("article", { id: "one", tabindex: -1, "aria-label": t("Episode") });
  const show = () => {
    kept = found();
    items.replaceChildren();
    items.style.height = `${kept.length * ROW}rem`;
    count.textContent = `${number(kept.length)} ${t("of")} ${number(rows.length)}`;
    if (items.isConnected) drawRows();
  };
  const set = (name) => ({ oninput: (event) => { chosen[name] = event.target.value; show(); } });
  const choice = (title, name, options) => el("label", {}, t(title), el("select", set(name), options.map(([value, text]) => el("option", { value, selected: chosen[name] === value ? "" : undefined }, text))));
  const field = (title, name, type) => el("label", {}, t(title), el("input", { type, step: "any", value: chosen[name], id: `by-${name}`, ...set(name) }));
  const every = (get, name) => [["", t("all")], ...[...new Set(episodes.map(get))].sort().map((value) => [value, name(value)])];
  const filters = el("form", { class: "filters", role: "search", onsubmit: (event) => event.preventDefault() },
    field("Text (/)", "text", "search"),
    shared.runs.length > 1 ? choice("Run", "run", [["", t("all")], ...shared.runs.map((run, number) => [String(number), runName(run.label)])]) : null,
    choice("Task type", "type", every(kind, kindLabel)), choice("Ended", "end", every(ends, label)), shared.failures.length ? choice("Failure", "failure", [["", t("all")], ...shared.failures.map(([name]) => [name, label(name)])]) : null, field("Reward from", "low", "number"), field("to", "high", "number"),
    choice("Order", "order", Object.keys(ORDERS).map((name) => [name, t(name)])));
  show();
  return [filters, el("div", { class: "panes" }, el("div", { class: "pane" }, count, box), one)];
}

// The open episode is marked in the list, and in sight there.
function mark() {
  const box = document.getElementById("list"), now = opened(), place = kept.indexOf(now);
  if (!box) return;
  if (place >= 0) {
    const high = box.firstChild.offsetHeight / kept.length;
    box.scrollTop = Math.min(place * high, Math.max(box.scrollTop, (place + 1) * high - box.clientHeight));
  }
  drawRows();
  for (const node of box.firstChild.children) current(node, kept[node.place] === now);
}

function opened() {
  const asked = new URLSearchParams(location.hash.slice(1));
  return asked.has("episode") ? rowByKey.get(`${asked.get("episode")}#${asked.get("sample") ?? ""}`) : undefined;
}

function open(scroll) {
  const place = document.getElementById("one"), row = opened();
  document.body.classList.toggle("reading-one", location.hash.startsWith("#episode="));
  mark();
  if (!location.hash.startsWith("#episode=")) return place.replaceChildren(el("p", { class: "quiet" }, t("Choose an episode. Keys: / searches, j and k go down and up, Escape goes back to the list.")));
  const back = el("a", { href: "#episodes", class: "back" }, t("Back to the list"));
  if (!row) return place.replaceChildren(back, el("p", {}, t("This episode is not on this page.")));
  const [first] = row.members;
  place.replaceChildren(back,
    el("p", { class: "quiet", dir: "auto" }, said([first.id, first.sample ? `${t("sample")} ${first.sample}` : "", ...[first.task_type, first.difficulty, first.wording].filter(Boolean).map(label)].filter(Boolean).join(" · ")), " ", el("a", { href: address(row), class: "link" }, t("link to this episode"))),
    el("h3", { dir: "auto", class: asked(first).length > 160 ? "long" : undefined }, said(asked(first))),
    el("div", { class: "members" }, row.members.map((one) => member(one, row.members.length > 1))));
  if (scroll) { place.focus({ preventScroll: true }); document.getElementById("episodes").scrollIntoView(); }
}

function member(one, several) {
  const facts = [["reward", one.reward], ["score", one.score], ["ended", label(ends(one))], ["failure", one.failure ? label(one.failure) : undefined], ["turns", one.turns], ["seconds", one.seconds], ["step", one.step], ["tokens", one.completion_tokens || undefined]].filter(([, value]) => value !== undefined);
  const numbers = Object.entries(one.numbers).filter(([, found]) => Object.keys(found).length);
  return el("section", { class: "member", "aria-label": shared.runs[one.run].label },
    several || shared.runs.length > 1 ? el("h4", {}, swatch(one.run), el("bdi", {}, said(runName(shared.runs[one.run].label)))) : null,
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, t(name)), el("dd", {}, said(number(value)))))),
    one.unscored ? el("p", { class: "warning" }, t("Unscored:"), " ", said(`${label(one.unscored)} ${one.detail || ""}`)) : null,
    "answer" in one ? el("dl", { class: "answers" }, [["Answer", one.answer], ["Gold", one.reference]].map(([name, text]) => el("div", {}, el("dt", {}, t(name)), el("dd", { dir: "auto", class: text ? undefined : "none" }, text ? said(text) : "–")))) : null,
    one.problem ? el("p", { class: "warning" }, t("Shown plainly; the record is not as its agent writes it:"), " ", said(one.problem)) : null,
    one.shown.length ? el("ol", { class: "pieces", "aria-label": t("What happened") }, one.shown.map(piece)) : el("p", { class: "quiet" }, one.mode ? t("A training run keeps the messages of a sample: of each step and each validation the worst and the best few.") : t("No messages of this episode were kept.")),
    tokens(one),
    numbers.map(([name, found]) => fold(t(name), name === "terms", table([["name", "value", "share of 1"], ...Object.entries(found).map(([part, value]) => [el("bdi", {}, said(label(part))), number(value), measure(value)])], t(name)))),
    Object.keys(one.more).length ? fold(t("The record as it is kept"), false, el("pre", { dir: "auto" }, coloured(JSON.stringify(one.more, null, 1), "json"))) : null);
}

const measure = (value) => el("svg", { viewBox: "0 0 100 6", class: "measure", "aria-hidden": "true" }, el("rect", { width: Math.max(0, Math.min(100, 100 * value)), height: 6, rx: 2 }));
const WHO = { prompt: "Prompt", policy: "Model", world: "Reply" };

function piece(one) {
  const notes = Object.entries(one.notes).filter(([, value]) => value !== null && value !== "" && value !== undefined);
  const head = el("p", { class: "who" }, t(WHO[one.who] || one.who), notes.map(([name, value]) => el("span", { class: `note ${name === "problem" || value === "error" ? "bad" : ""}` }, el("i", {}, t(name)), " ", el("bdi", {}, said(typeof value === "string" ? t(value) : value)))));
  const text = one.text ? el(one.form === "text" ? "div" : "pre", { class: "text", dir: "auto" }, coloured(one.text, one.form)) : null;
  const body = [text, one.table.length ? table(one.table.map((row) => (Array.isArray(row) ? row : [row]).map((cell) => (cell === null ? "NULL" : typeof cell === "object" ? JSON.stringify(cell) : String(cell)))), t("rows"), { named: false }) : null];
  const long = one.who === "prompt" && one.notes.role === "system";
  return el("li", { class: Object.hasOwn(WHO, one.who) ? one.who : "world" }, long ? el("details", {}, el("summary", {}, head), body) : [head, body]);
}
