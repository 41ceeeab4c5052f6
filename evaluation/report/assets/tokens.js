// The tokens of an episode: what was trained is underlined, and shaded by how unlikely it was when it was played.

const SHADES = [0.9, 0.5, 0.2, 0.05, 0.01]; // a shade from each of these probabilities on, and one below them all
const LEAST = 10; // tokens in the table of the least likely

function shade(logProb) {
  const place = SHADES.findIndex((from) => Math.exp(logProb) >= from);
  return `p${place < 0 ? SHADES.length : place}`;
}

function tokens(one) {
  if (!one.tokens.length) return el("p", { class: "quiet" }, one.mode ? t("The tokens of this episode were not kept; a run keeps those of the worst and the best few of each training step.") : t("Tokens and their log-probabilities are kept in training runs alone."));
  const sum = (numbers) => numbers.reduce((total, value) => total + value, 0);
  const rated = one.tokens.flatMap(({ parts }) => parts).flatMap((part) => part.texts.map((text, place) => [text, part.log_probs?.[place]])).filter(([, logProb]) => typeof logProb === "number");
  const counts = [`${number(sum(one.tokens.map(({ count }) => count)))} ${t("tokens")}`, `${number(sum(one.tokens.map(({ trained }) => trained)))} ${t("trained")}`,
    rated.length ? `${t("mean log-probability")} ${number(sum(rated.map(([, logProb]) => logProb)) / sum(one.tokens.map(({ trained, parts }) => (parts.some((part) => part.log_probs) ? trained : 0))))}` : t("without log-probabilities")];
  const shades = [...SHADES.map((from) => [`${number(100 * from)} %+`, from]), [t("less"), 0]].map(([name, from]) => [el("mark", {}, el("span", { class: shade(Math.log(from)) }, name)), " "]);
  const least = rated.toSorted(([, a], [, b]) => a - b).slice(0, LEAST).map(([text, logProb]) => [el("code", {}, said(JSON.stringify(text))), number(logProb), `${number(100 * Math.exp(logProb))} %`]);
  return fold(t("Tokens"), !one.shown.length,
    el("p", { class: "quiet" }, counts.join(", ")),
    rated.length ? el("p", { class: "quiet" }, t("trained, by probability:"), " ", shades) : null,
    one.tokens.map(({ parts }, place) => el("div", { class: "tokens", dir: "auto", tabindex: 0, role: "region", "aria-label": `${t("Tokens")} ${place + 1}` }, parts.map(stretch))),
    least.length ? table([["token", "log-probability", "probability"], ...least], t("The least likely tokens")) : null);
}

function stretch({ trained, texts, log_probs }) {
  if (!trained) return el("span", { class: "told" }, said(texts.join("")));
  return el("mark", {}, texts.map((text, place) => (log_probs ? el("span", { class: shade(log_probs[place]), title: number(log_probs[place]) }, said(text)) : said(text))));
}
