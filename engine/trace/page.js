"use strict";
(() => {
  const recording = JSON.parse(document.getElementById("recording").textContent);
  const STATES = ["locked", "settled", "new", "open", "changing", "refused"];
  const SAID = {
    locked: "given, locked", settled: "settled in an earlier step", new: "settled in this step",
    open: "open, may still change", changing: "open, another than a step ago", refused: "guessed and not kept",
  };
  const at = (id) => document.getElementById(id);
  const percent = (share) => `${share > 0 && share < 0.001 ? "<0.1" : (share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;

  const make = (name, settings = {}, ...inside) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(settings)) made.setAttribute(key, value);
    made.append(...inside);
    return made;
  };
  const drawn = (name, settings, ...inside) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(settings)) made.setAttribute(key, value);
    made.append(...inside);
    return made;
  };

  const table = recording.tokens.map(([text, state, chance, entropy, source, others, kind]) =>
    ({ text, state: STATES[state], chance, entropy, source, others, kind }));
  const gaps = recording.gaps.map((gap) => {
    let row = [];
    const steps = gap.steps.map(([kept, indices, entropy]) => {
      row = row.slice(0, kept).concat(indices.map((index) => table[index]));
      const count = (...states) => row.filter((token) => states.includes(token.state)).length;
      return {
        tokens: row, entropy, fresh: count("new"), refused: count("refused"),
        settled: count("settled", "new"), open: count("open", "changing"), changing: count("changing"),
      };
    });
    return { ...gap, steps };
  });

  let gap = gaps[0];
  let index = 0;
  let timer = 0;
  let looked = -1;
  let pinned = false;

  // Line ends and what writes nothing are shown by a sign of their own.
  function contents(token) {
    if (token.kind === "noise") return [make("span", { class: "mark" }, "▒")];
    if (token.kind === "end") return [make("span", { class: "mark" }, "■")];
    if (token.text === "") return [make("span", { class: "mark" }, "·")];
    const parts = [];
    token.text.split("\n").forEach((line, number) => {
      if (number > 0) parts.push(make("span", { class: "mark", "aria-hidden": "true" }, "↵"), "\n");
      if (line) parts.push(line);
    });
    return parts;
  }

  const level = (chance) => (chance === null ? "none" : chance < 0.5 ? "low" : chance < 0.9 ? "middle" : "high");

  function tokenElement(token, number) {
    const known = token.state !== "locked" && token.chance !== null;
    const settings = { class: `token ${token.state}`, "data-number": number };
    if (token.state !== "locked") settings["data-level"] = level(token.chance);
    if (known) settings["data-percent"] = percent(token.chance);
    const made = make("span", settings, ...contents(token));
    if (known) made.style.setProperty("--sure", token.chance);
    return made;
  }

  const given = (text) => make("span", { class: "token locked" }, text);

  function showCanvas() {
    const step = gap.steps[index];
    const tokens = step ? step.tokens.map(tokenElement) : [];
    at("canvas").replaceChildren(given(gap.before), ...tokens, given(gap.after));
  }

  function sentence() {
    const step = gap.steps[index];
    if (!step) return "The engine took no step here.";
    const parts = [`${step.settled} settled (${step.fresh} new)`];
    if (step.refused) parts.push(`${step.refused} refused`);
    if (step.open) parts.push(`${step.open} open${step.changing ? ` (${step.changing} changed)` : ""}`);
    if (step.entropy !== null) parts.push(`mean entropy ${step.entropy.toFixed(2)} nats`);
    return `Step ${index + 1} of ${gap.steps.length}: ${parts.join(", ")}.`;
  }

  function showToken() {
    for (const old of at("canvas").querySelectorAll(".shown")) old.classList.remove("shown");
    const token = gap.steps[index]?.tokens[looked];
    const panel = at("token");
    if (!token) {
      panel.replaceChildren(make("p", { class: "facts" }, "Point at a token, click to keep it, or move with , and ."));
      return;
    }
    at("canvas").querySelector(`[data-number="${looked}"]`)?.classList.add("shown");
    const named = token.kind === "noise" ? "nothing yet" : token.kind === "end" ? "end of text" : JSON.stringify(token.text);
    const lines = [make("p", {}, make("code", {}, named)), make("p", {}, `Place ${looked + 1}: ${SAID[token.state]}`)];
    if (token.chance !== null && token.state !== "locked") lines.push(make("p", {}, `Probability ${percent(token.chance)}`));
    if (token.entropy !== null) lines.push(make("p", {}, `Entropy of the place ${token.entropy.toFixed(2)} nats`));
    if (token.source) lines.push(make("p", {}, `Named by ${token.source}`));
    if (token.others.length) lines.push(alternatives(token, named));
    panel.replaceChildren(...lines);
  }

  function alternatives(token, named) {
    const rows = [[named, token.chance], ...token.others.map(([text, share]) => [JSON.stringify(text), share])];
    return make("table", { class: "bars", "aria-label": "What else could stand here" },
      ...rows.sort((one, other) => other[1] - one[1]).map(([text, share]) => make("tr", {},
        make("td", {}, make("code", {}, text)),
        make("td", {}, make("meter", { min: 0, max: 1, value: share, "aria-label": percent(share) })),
        make("td", {}, percent(share)))));
  }

  const WIDE = 1000, HIGH = 190, LEFT = 46, TOP = 16, FOOT = 120, BASE = 172;
  const across = (step) => LEFT + 14 + (gap.steps.length < 2 ? 0.5 : step / (gap.steps.length - 1)) * (WIDE - LEFT - 38);

  function showCurve() {
    const most = Math.max(0.1, ...gap.steps.map((step) => step.entropy ?? 0));
    const busiest = Math.max(1, ...gap.steps.map((step) => step.fresh + step.refused));
    const down = (entropy) => FOOT - (entropy / most) * (FOOT - TOP);
    const known = gap.steps.map((step, number) => [number, step.entropy]).filter(([, entropy]) => entropy !== null);
    const path = known.map(([number, entropy], i) => `${i ? "L" : "M"}${across(number)} ${down(entropy)}`).join("");
    const dots = known.map(([number, entropy]) => drawn("circle", { class: "dot", cx: across(number), cy: down(entropy), r: known.length > 120 ? 1 : 3 }));
    const wide = Math.max(1, Math.min(18, (WIDE - LEFT) / Math.max(1, gap.steps.length) - 3));
    const bar = (number, from, count, kind) => drawn("rect", { class: `bar ${kind}`, x: across(number) - wide / 2, width: wide,
      y: BASE - ((from + count) / busiest) * 38, height: (count / busiest) * 38 });
    const bars = gap.steps.flatMap((step, number) => [bar(number, 0, step.fresh, ""), ...(step.refused ? [bar(number, step.fresh, step.refused, "lost")] : [])]);
    const label = (x, y, text, anchor = "end") => drawn("text", { x, y, "text-anchor": anchor }, text);
    const graph = drawn("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": curveInWords() },
      drawn("line", { class: "grid", x1: LEFT, x2: WIDE, y1: FOOT, y2: FOOT }),
      drawn("line", { class: "grid", x1: LEFT, x2: WIDE, y1: TOP, y2: TOP }),
      label(LEFT - 6, TOP + 4, known.length ? most.toFixed(1) : ""), label(LEFT - 6, FOOT + 4, known.length ? "0" : ""),
      label(LEFT + 4, 10, known.length ? "mean entropy, nats" : "entropy was not recorded", "start"),
      label(LEFT - 6, BASE - 34, busiest), label(LEFT - 6, BASE + 3, "0"), label(LEFT + 4, FOOT + 14, "tokens settled, and refused (outlined)", "start"),
      label(across(0), HIGH - 4, "1", "middle"), label(across(Math.max(0, gap.steps.length - 1)), HIGH - 4, gap.steps.length > 1 ? gap.steps.length : "", "middle"),
      ...bars, drawn("path", { class: "line", d: path || "M0 0" }), ...dots,
      drawn("line", { class: "now", id: "now", y1: 2, y2: BASE }));
    graph.addEventListener("click", (event) => {
      const box = graph.getBoundingClientRect();
      const place = ((event.clientX - box.left) / box.width * WIDE - LEFT - 14) / (WIDE - LEFT - 38);
      pause();
      go(Math.round(place * (gap.steps.length - 1)));
    });
    at("curve").replaceChildren(graph);
  }

  function curveInWords() {
    const known = gap.steps.map((step) => step.entropy).filter((entropy) => entropy !== null);
    if (!known.length) return `${gap.steps.length} steps; entropy was not recorded`;
    return `Mean entropy over ${gap.steps.length} steps: first ${known[0].toFixed(2)}, last ${known.at(-1).toFixed(2)}, highest ${Math.max(...known).toFixed(2)} nats`;
  }

  function showTable() {
    const head = ["Step", "Settled", "New", "Refused", "Open", "Mean entropy"].map((name) => make("th", { scope: "col" }, name));
    const rows = gap.steps.map((step, number) => make("tr", {}, ...[number + 1, step.settled, step.fresh, step.refused, step.open,
      step.entropy === null ? "" : step.entropy.toFixed(3)].map((value) => make("td", {}, String(value)))));
    at("table").replaceChildren(make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  }

  function showResult() {
    at("result").textContent = gap.result ?? "";
    const facts = [...(gap.note ? [["Nothing was put in", gap.note]] : []), ["Line", String(gap.line)], ...gap.facts];
    at("facts").replaceChildren(...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  }

  function go(step) {
    index = Math.max(0, Math.min(gap.steps.length - 1, step));
    const now = String(index + 1);
    at("step").value = now;
    at("step").setAttribute("aria-valuetext", `Step ${now} of ${gap.steps.length}`);
    at("position").textContent = gap.steps.length ? `${now} of ${gap.steps.length}` : "no steps";
    at("status").textContent = sentence();
    showCanvas();
    showToken();
    const marker = at("now");
    marker.setAttribute("x1", across(index));
    marker.setAttribute("x2", across(index));
    history.replaceState(null, "", `#gap=${gaps.indexOf(gap) + 1}&step=${now}`);
  }

  function choose(number, step) {
    pause();
    gap = gaps[Math.max(0, Math.min(gaps.length - 1, number))];
    at("gap").value = String(gaps.indexOf(gap));
    at("step").max = Math.max(1, gap.steps.length);
    pinned = false;
    looked = -1;
    showCurve();
    showTable();
    showResult();
    go(step);
  }

  function playing(on) {
    at("play").setAttribute("aria-pressed", String(on));
    at("play").textContent = on ? "❚❚ Pause" : "▶ Play";
    // Every step while it plays would be too much to hear.
    at("status").setAttribute("aria-live", on ? "off" : "polite");
  }
  function pause() {
    clearInterval(timer);
    timer = 0;
    playing(false);
  }
  function play() {
    if (index >= gap.steps.length - 1) go(0);
    clearInterval(timer);
    timer = setInterval(() => {
      if (index >= gap.steps.length - 1) pause();
      else go(index + 1);
    }, Number(at("speed").value));
    playing(true);
  }
  const toggle = () => (timer ? pause() : play());
  const stepTo = (step) => { pause(); go(step); };

  function look(number, keep) {
    const count = gap.steps[index]?.tokens.length ?? 0;
    looked = count ? Math.max(0, Math.min(count - 1, number)) : -1;
    pinned = keep;
    showToken();
  }

  function numbers(on) {
    at("numbers").checked = on;
    at("canvas").classList.toggle("numbers", on);
  }

  const KEYS = {
    " ": toggle, ArrowLeft: () => stepTo(index - 1), ArrowRight: () => stepTo(index + 1),
    Home: () => stepTo(0), End: () => stepTo(gap.steps.length - 1),
    ",": () => look(looked - 1, true), ".": () => look(looked + 1, true), n: () => numbers(!at("numbers").checked),
  };

  function listen() {
    document.addEventListener("keydown", (event) => {
      const own = event.target instanceof Element && event.target.closest("button, select, input, summary");
      // A control keeps the keys it uses itself: the slider steps by its own arrows.
      const taken = own && [" ", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key);
      if (taken || event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(KEYS, event.key)) return;
      event.preventDefault();
      KEYS[event.key]();
    });
    at("play").addEventListener("click", toggle);
    at("first").addEventListener("click", () => stepTo(0));
    at("back").addEventListener("click", () => stepTo(index - 1));
    at("next").addEventListener("click", () => stepTo(index + 1));
    at("last").addEventListener("click", () => stepTo(gap.steps.length - 1));
    at("step").addEventListener("input", () => stepTo(Number(at("step").value) - 1));
    at("speed").addEventListener("change", () => { if (timer) play(); });
    at("gap").addEventListener("change", () => choose(Number(at("gap").value), 0));
    at("numbers").addEventListener("change", () => numbers(at("numbers").checked));
    const pointed = (event) => event.target.closest("[data-number]");
    at("canvas").addEventListener("mouseover", (event) => {
      const token = pointed(event);
      if (token && !pinned) look(Number(token.dataset.number), false);
    });
    at("canvas").addEventListener("click", (event) => {
      const token = pointed(event);
      if (token) look(Number(token.dataset.number), true);
      else { pinned = false; looked = -1; showToken(); }
    });
  }

  at("file").textContent = recording.file;
  at("model").textContent = recording.facts.map(([name, value]) => `${name} ${value}`).join(" · ");
  at("gap").append(...gaps.map((one, number) => make("option", { value: number }, `${number + 1} of ${gaps.length}, line ${one.line}`)));
  at("gap-choice").hidden = gaps.length < 2;
  listen();
  const asked = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (Number(asked.get(name)) || 1) - 1;
  choose(number("gap"), number("step"));
  document.documentElement.dataset.ready = "true";
})();
