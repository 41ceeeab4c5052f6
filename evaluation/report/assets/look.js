"use strict";
// What the page is made of: elements, words in the reader's language, texts of episodes as text. Nothing here reads markup.

const { shared, episodes } = JSON.parse(document.getElementById("data").textContent);
const words = new Map(Object.entries(shared.words));
let language = /^zh/i.test(navigator.language) ? "zh" : "en";

const t = (english) => (language === "zh" && words.get(english)) || english;

// A name of the data (a task type, a measure, an ending) as a person reads it; in Chinese also part by part, such as
// "difficulty hard" or "evidence [95 %]". A dotted name is a setting and stays as it is.
function label(name) {
  const [, base, interval = ""] = /^([^]*?)( \[95 %\])?$/.exec(name);
  const parts = base.split(" ");
  if (language === "zh" && words.has(base)) return words.get(base) + interval;
  if (language === "zh" && parts.every((part) => words.has(part))) return parts.map((part) => words.get(part)).join(" ") + interval;
  return (base.includes(".") ? base : base.replaceAll("_", " ")) + interval;
}

// A run's name: the parts of a demo have one in either language.
const runName = (name) => name.replace(/(^| )(before|after|train)$/, (_, gap, part) => gap + t(part === "train" ? "training run" : part));
const against = ([second, first]) => [el("bdi", {}, said(runName(second))), ` ${t("against")} `, el("bdi", {}, said(runName(first)))];

function el(tag, attributes = {}, ...children) {
  const drawn = ["svg", "path", "circle", "line", "text", "rect"].includes(tag);
  const node = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

// Characters that nobody sees, or that turn a line around, are named instead of obeyed.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff]/;

function said(text) {
  const parts = String(text).split(new RegExp(`(${UNSEEN.source})`));
  const code = (part) => "U+" + part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  return parts.filter(Boolean).map((part) => (part.length === 1 && UNSEEN.test(part) ? el("span", { class: "unseen" }, code(part)) : part));
}

const STRING = /"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?/.source;
const NUMBER = /\b\d+(?:\.\d+)?\b/.source;
const FORMS = {
  sql: [/'(?:[^']|'')*'?/.source, /--[^\n]*|\/\*[^]*?(?:\*\/|$)/.source, NUMBER,
    /\b(?:SELECT|FROM|WHERE|AND|OR|NOT|IN|LIKE|IS|NULL|AS|ON|JOIN|LEFT|INNER|GROUP|BY|ORDER|HAVING|LIMIT|OFFSET|DISTINCT|COUNT|SUM|AVG|MIN|MAX|UNION|ALL|WITH|CASE|WHEN|THEN|ELSE|END|BETWEEN|EXISTS|ASC|DESC|CAST)\b/.source],
  python: [`"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|${STRING}`, /#[^\n]*/.source, NUMBER,
    /\b(?:def|return|if|elif|else|for|while|in|not|and|or|is|import|from|as|with|try|except|finally|raise|lambda|class|None|True|False|print|yield|pass|break|continue)\b/.source],
  json: [STRING, /(?!)/.source, NUMBER, /\b(?:true|false|null)\b/.source],
};
const KINDS = ["string", "comment", "number", "keyword"];

function coloured(text, form) {
  if (!Object.hasOwn(FORMS, form)) return said(text);
  const pattern = new RegExp(FORMS[form].map((part) => `(${part})`).join("|"), form === "sql" ? "gi" : "g");
  const pieces = [];
  let end = 0;
  for (const found of text.matchAll(pattern)) {
    pieces.push(said(text.slice(end, found.index)), el("span", { class: KINDS[found.slice(1).findIndex((part) => part !== undefined)] }, said(found[0])));
    end = found.index + found[0].length;
  }
  return [...pieces, said(text.slice(end))];
}

function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  return String(Number(value.toPrecision(3)));
}

const FIGURE = /^[-+]?[\d.,]+( %)?( \[.*\]| to [-+]?[\d.]+)?$|^too few$|^–$/;

// Lets a box that is wider than its place be scrolled, and says so while something is cut off.
const cut = new ResizeObserver((seen) => seen.forEach(({ target }) => {
  const box = target.closest(".scroll");
  if (box) box.previousElementSibling.hidden = box.scrollWidth <= box.clientWidth + 1;
}));

function scrolling(caption, inner) {
  cut.observe(inner);
  const box = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, inner);
  cut.observe(box);
  return [el("p", { class: "cut", hidden: "" }, t("Cut off on the right: scroll sideways →")), box];
}

// rows: cells, the header first; a cell is a text or an element. marked: rows (from 1) that are set off. named: whether
// the first row and column are names of ours, which are translated; an episode's table and questions are as they are.
function table(rows, caption, { marked = new Set(), named = true } = {}) {
  const figures = rows[0].map((_, place) => place > 0 && rows.length > 1 && rows.slice(1).every((row) => typeof row[place] === "string" && FIGURE.test(row[place])));
  const word = (cell, ours) => said(named && (ours || cell.endsWith("too few]")) ? label(cell).replace("too few", t("too few")) : named && cell === "too few" ? t(cell) : named && FIGURE.test(cell) ? cell.replace(" to ", ` ${t("to")} `) : cell);
  const cells = (row, tag) => row.map((cell, place) =>
    el(place || tag === "th" ? tag : "th", { title: tag === "th" && named ? meaning(typeof cell === "string" ? cell : "a run") : undefined, scope: tag === "th" ? "col" : place ? undefined : "row", dir: "auto", class: figures[place] ? "figure" : undefined },
      typeof cell === "string" ? word(cell, tag === "th" || (!place && rows[0][0] !== "question")) : cell));
  const body = rows.slice(1).map((row, place) => el("tr", { class: marked.has(place + 1) ? "differs" : undefined }, cells(row, "td")));
  return scrolling(caption, el("table", {}, el("thead", {}, el("tr", {}, cells(rows[0], "th"))), el("tbody", {}, body)));
}

// What the head of a column means, in the reader's language.
function meaning(head) {
  const base = head.replace(/ \[95 %\]$/, "");
  const ofRun = shared.runs.some((run) => run.label === base) ? "a run" : base.includes(" - ") ? "difference" : base.startsWith("answer of ") ? "answer of" : "";
  const found = shared.heads[Object.hasOwn(shared.heads, base) ? base : ofRun];
  return found && found[language];
}

const swatch = (run) => el("span", { class: `swatch run${run % 8}`, "aria-hidden": "true" });
const fold = (title, open, ...children) => el("details", open ? { open: "" } : {}, el("summary", {}, title), ...children);
