"use strict";
// Ask an agent and watch each step arrive. What a model or a person wrote reaches the page as text alone (textContent).

const SAY = {
  en: {
    warning: "A demonstration. Not medical advice, and not for patients.", token: "Token (AGL_TOKEN)", case: "Case",
    own: "my own", random: "a random one", question: "Your question", complaint: "Your complaint or case; the agent talks to you",
    answer: "Your answer", send: "Send", stop: "Stop", copy: "Copy", fresh: "New", keys: "Enter sends, Shift+Enter starts a line, Esc stops.",
    waiting: "The agent is at work", yours: "Your turn: answer the agent.", done: "Done.", stopped: "Stopped.", copied: "Copied.",
    unfounded: "Check this answer: nothing of it stands in the rows above.",
    agent: "Agent", visitor: "You", world: "What came back", end: "Answer", error: "Failed", thought: "Thought", reference: (text) => `Right answer: ${text}`, empty: "(empty)",
    examples: "Try one", cut: "Cut off on the right: scroll sideways →", served: (a) => `the ${a.agent} agent with the model ${a.model}`, spent: "What it took",
    again: "Ask another question here, or press New for an empty page.", closed: "This conversation is over. Press New to begin again.",
    cost: (a) => `${a.turns} ${a.turns === 1 ? "reply" : "replies"}, ${a.prompt_tokens} tokens read, ${a.completion_tokens} written, ${a.seconds.toFixed(1)} s`,
    unauthorized: "The server asks for its token.", wrong: "Wrong token.", lost: "The connection was lost.", unavailable: "The agent cannot answer at the moment. Please try again later.", rows: (n) => (n === 1 ? "1 row" : `${n} rows`),
  },
  zh: {
    warning: "仅供演示。不是医疗建议，不得用于患者。", token: "令牌（AGL_TOKEN）", case: "题目",
    own: "自己输入", random: "随机选一个", question: "您的问题", complaint: "您的主诉或病例：智能体会直接与您对话",
    answer: "您的回答", send: "发送", stop: "停止", copy: "复制", fresh: "重新开始", keys: "回车发送，Shift+回车换行，Esc 停止。",
    waiting: "智能体正在工作", yours: "轮到您：请回答智能体。", done: "完成。", stopped: "已停止。", copied: "已复制。",
    unfounded: "请核对：这个回答的内容不在上面查到的结果中。",
    agent: "智能体", visitor: "您", world: "返回的内容", end: "答案", error: "失败", thought: "思考", reference: (text) => `正确答案：${text}`, empty: "（空）",
    examples: "试一个例子", cut: "右侧未显示完：请左右滑动 →", served: (a) => `智能体 ${a.agent}，模型 ${a.model}`, spent: "用量",
    again: "可以在这里继续提问，或按“重新开始”清空页面。", closed: "本次对话已结束。请按“重新开始”再来一次。",
    cost: (a) => `回复 ${a.turns} 次，读入 ${a.prompt_tokens} 个 token，写出 ${a.completion_tokens} 个，${a.seconds.toFixed(1)} 秒`,
    unauthorized: "服务器需要令牌。", wrong: "令牌不正确。", lost: "连接已中断。", unavailable: "智能体暂时无法回答，请稍后再试。", rows: (n) => `${n} 行`,
  },
};
let language = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
let say = SAY[language];
const at = (id) => document.getElementById(id);
let about = null, messages = [], transcript = [], running = null;

// Characters that nobody sees, or that turn a line around, are named instead of obeyed, as in reports.
const UNSEEN = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff])/;

function named(text) {  // every second part is one of them
  const code = (part) => "U+" + part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  return String(text).split(UNSEEN).map((part, place) => (place % 2 ? Object.assign(document.createElement("span"), { className: "unseen", textContent: code(part) }) : part));
}

function make(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.append(...named(text));
  if (kind) element.className = kind;
  return element;
}

function json(text) {
  try { const value = JSON.parse(text); return value && typeof value === "object" ? value : null; } catch { return null; }
}

function table(found) {
  const whole = make("table"), head = whole.createTHead().insertRow(), body = whole.createTBody();
  for (const column of found.columns) {
    const name = String(column?.name ?? column);
    head.append(make("th", (language === "zh" && about.names[name]) || name));
  }
  for (const cells of found.rows) {
    const row = body.insertRow();
    for (const cell of Array.isArray(cells) ? cells : [cells]) row.append(make("td", cell === null ? "" : String(cell)));
  }
  const box = make("div", undefined, "scroll");
  box.tabIndex = 0;  // so that the keyboard can scroll it
  box.append(whole);
  box.role = "region";
  box.ariaLabel = say.world;
  const hint = make("p", say.cut, "cost");
  hint.hidden = true;
  new ResizeObserver(() => { hint.hidden = box.scrollWidth <= box.clientWidth + 1; }).observe(box);
  return [hint, box, make("p", say.rows(found.rows.length) + (found.truncated ? " +" : ""), "cost")];
}

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 1));

function call(name, given) {  // a tool or an action with what it is given, programs and statements as they are
  const parts = given && typeof given === "object" ? Object.values(given) : [given ?? ""];
  return [make("strong", String(name)), ...parts.map((part) => make("pre", shown(part)))];
}

function split(text) {  // the thought of a reply, and its words without tags of the protocol
  const [, thought, rest] = /^\s*<think>([\s\S]*?)(?:<\/think>|$)([\s\S]*)$/.exec(text) ?? [null, "", text];
  return [thought, rest.trim().replace(/^<answer>/, "").replace(/<\/answer>$/, "").trim()];
}

function standsIn(answer, reply) {  // of an action only its answer is one: "m" is a letter of any
  const action = json(split(reply)[1]);
  if (action && typeof action.action === "string") return shown(action.params?.answer) === answer;
  return reply.includes(answer);
}

function words(text) {  // a reply in words, its thought folded
  const [thought, plain] = split(text);
  const parts = [];
  if (thought) {
    const folded = make("details");
    folded.append(make("summary", say.thought), make("p", thought.trim(), "text"));
    parts.push(folded);
  }
  const action = json(plain);
  if (action && typeof action.action === "string") return [...parts, ...call(action.action, action.params)];
  return [...parts, make("p", plain || say.empty, "text")];
}

function parts(step) {
  if (step.role === "assistant") {
    const calls = (step.tool_calls ?? []).flatMap(({ function: f }) => call(f.name, json(f.arguments) ?? f.arguments));
    return step.content || !calls.length ? [...words(step.content ?? ""), ...calls] : calls;
  }
  const found = json(step.content);
  if (Array.isArray(found?.columns) && Array.isArray(found.rows) && found.columns.length) return table(found);
  return [make("pre", found?.error ? String(found.error) : step.content || say.empty)];
}

function add(kind, content, plain) {
  at("intro").hidden = true;
  const item = make("li", undefined, kind);
  item.append(make("strong", say[kind]), ...content);
  at("log").append(item);
  transcript.push(`${say[kind]}:\n${plain}`);
  at("main").scrollTop = at("main").scrollHeight;
}

function state(text, busy = false) {
  at("state").textContent = text;
  at("state").className = busy ? "busy" : "";
}

function failed(text) { add("error", [make("p", text, "text")], text); state(""); }

function arrived(chunk) {  // one piece of the stream
  if (chunk.error) throw new Error(chunk.error.code === "invalid_request_error" ? chunk.error.message : say.unavailable);
  if (chunk.step) {
    if (chunk.step.role === "assistant") messages.push({ role: "assistant", content: chunk.step.content ?? "" });
    add(chunk.step.role === "assistant" ? "agent" : "world", parts(chunk.step), shown(chunk.step.tool_calls ?? chunk.step.content));
  }
  if (chunk.agent) ended(chunk.agent);
}

function ended(agent) {
  const cost = make("details", undefined, "cost"), last = at("log").lastElementChild;
  cost.append(make("summary", say.spent), make("p", say.cost(agent)));
  if (agent.reason === "waits") {
    at("prompt").textContent = say.answer;
    at("caserow").hidden = true;
  } else if (agent.answer && standsIn(agent.answer, agent.reply)) {  // it stands there already
    last.className = "agent end";
    last.firstChild.textContent = say.end;
  } else {
    const text = agent.answer ?? about.ends[agent.reason]?.[language] ?? agent.reason;
    add("end", words(text), text);
  }
  if (agent.in_rows === false) at("log").lastElementChild.append(make("p", say.unfounded, "note"));
  if (agent.reference) at("log").lastElementChild.append(make("p", say.reference(agent.reference), "text"));
  at("log").lastElementChild.append(cost);
  transcript.push(say.cost(agent));
  if (agent.reason !== "waits") {
    at("words").disabled = about.converses;  // the conversation is over
    at("words").placeholder = about.converses ? say.closed : say.again;
    inSight(at("log").lastElementChild);
  }
  state(agent.reason === "waits" ? say.yours : say.done);
}

function inSight(item) {  // the answer from its first line on, however long it is
  at("main").scrollTop += item.getBoundingClientRect().top - at("main").getBoundingClientRect().top - 8;
}

async function* events(response) {  // the data of server-sent events
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", piece; !(piece = await reader.read()).done;) {
    const lines = (rest + piece.value).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data: ") && line !== "data: [DONE]") yield JSON.parse(line.slice(6));
  }
}

// A header holds ASCII alone, as every token is; with other characters it is a wrong one, and no fault of the network.
const written = (token) => token.replace(/[^ -~]/g, (char) => `%${char.charCodeAt(0).toString(16)}`);

async function fetched(path, options = {}) {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${written(at("token").value)}` };
  const response = await fetch(path, { ...options, headers });
  if (response.status === 401) { at("tokenrow").hidden = false; at("token").focus(); throw new Error(at("token").value ? say.wrong : say.unauthorized); }
  if (!response.ok) throw new Error((await response.json().catch(() => null))?.error?.message ?? `HTTP ${response.status}`);
  return response;
}

async function ask() {
  if (running || !about) return;
  const ids = Object.keys(about.cases), drawn = ids[Math.floor(Math.random() * ids.length)];
  const chosen = at("case").value === "random" ? drawn : at("case").value;
  const text = chosen ? about.cases[chosen] : at("words").value.trim();
  if (!text) return;
  if (!about.converses || chosen) messages = [];
  const before = [...messages];
  if (!chosen) messages.push({ role: "user", content: text });
  add("visitor", [make("p", text, "text")], text);
  const body = { model: about.agent, messages, stream: true, ...(chosen ? { case: chosen } : {}) };
  at("words").value = "";
  running = new AbortController();
  buttons();
  state(say.waiting, true);
  try {
    const response = await fetched("v1/chat/completions", { method: "POST", body: JSON.stringify(body), signal: running.signal });
    for await (const chunk of events(response)) arrived(chunk);
    if (at("state").className === "busy") throw new TypeError();
  } catch (error) {
    messages = before;  // as if this had not been said
    if (!chosen) at("words").value = text;  // to be sent again
    if (error.name === "AbortError") state(say.stopped);
    else failed(error instanceof TypeError ? say.lost : error.message);
  }
  if (chosen) {
    messages = [];  // a case is no conversation of the visitor's
    at("case").value = "";
    if (!about.converses) picked();
  }
  running = null;
  buttons();
  (at("words").disabled ? at("fresh") : at("words")).focus();
}

function buttons() {
  at("stop").disabled = !running;
  at("copy").disabled = at("fresh").disabled = Boolean(running) || !transcript.length;
  at("send").disabled = Boolean(running) || (at("words").disabled && !at("case").value);
}

function fresh() {
  messages = [];
  transcript = [];
  at("log").replaceChildren();
  at("caserow").hidden = false;
  at("intro").hidden = !about;
  at("words").placeholder = "";
  at("prompt").textContent = about?.converses ? say.complaint : say.question;
  state("");
  picked();
  if (!at("words").disabled) at("words").focus();
}

function picked() {  // a case has its own words
  at("words").disabled = Boolean(at("case").value);
  buttons();
}

async function begin() {  // what is served here; again once there is a token
  try { about = await (await fetched("agent")).json(); } catch (error) { state(error.message); return false; }
  if (about.language === "zh") language = "zh";
  speak();
  fresh();
  return true;
}

function speak() {  // everything that does not depend on what was said
  say = SAY[language];
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const element of document.querySelectorAll("[data-say]")) element.textContent = say[element.dataset.say];
  at("form").ariaLabel = about?.converses ? say.complaint : say.question;
  at("other").textContent = language === "zh" ? "English" : "中文";
  at("other").lang = language === "zh" ? "en" : "zh-CN";
  if (!about) return;
  document.title = at("title").textContent = about.title[language] ?? about.agent;
  at("served").textContent = say.served(about);
  at("about").textContent = about.about[language] ?? "";
  const choices = [["", say.own], ["random", say.random], ...Object.entries(about.cases).map(([id, text]) => [id, `${id}: ${text.slice(0, 60)}`])];
  const chosen = at("case").value;
  at("case").replaceChildren(...choices.map(([value, text]) => Object.assign(make("option", text), { value })));
  at("case").value = chosen;
  at("examples").previousElementSibling.hidden = !about.examples.length;
  at("examples").replaceChildren(...about.examples.map((id) => {
    const item = make("li"), button = make("button", about.cases[id].length > 160 ? `${about.cases[id].slice(0, 160)}…` : about.cases[id]);
    button.type = "button";
    button.addEventListener("click", () => { at("case").value = id; picked(); ask(); });
    item.append(button);
    return item;
  }));
}

speak();
at("other").addEventListener("click", () => {
  language = language === "zh" ? "en" : "zh";
  speak();
  if (at("words").placeholder) at("words").placeholder = about.converses ? say.closed : say.again;
  at("prompt").textContent = at("caserow").hidden ? say.answer : about?.converses ? say.complaint : say.question;
});
at("form").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
at("words").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); ask(); }
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") running?.abort(); });
at("stop").addEventListener("click", () => running?.abort());
at("copy").addEventListener("click", async () => {
  if (navigator.clipboard) await navigator.clipboard.writeText(transcript.join("\n\n"));
  else { getSelection().selectAllChildren(at("log")); document.execCommand("copy"); }  // without TLS there is no other way
  state(say.copied);
});
at("fresh").addEventListener("click", fresh);
at("case").addEventListener("change", picked);
at("token").addEventListener("change", begin);
begin();
