"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const el = (id) => document.getElementById(id);
  const KEYFRAME = 250;
  const READS = new Set(["read", "async_read", "operand_read", "bulk_read"]);
  const WRITES = new Set(["write", "atomic", "async_write", "copy_complete", "bulk_write"]);
  const VERBS = {
    read: "read", write: "write", atomic: "update atomically", async_read: "copy asynchronously from",
    async_write: "copy asynchronously into", operand_read: "read MMA operands from", bulk_read: "begin a bulk copy from",
    bulk_write: "begin a bulk copy into", copy_complete: "receive copied data in", mbarrier_init: "initialize an mbarrier in",
    mbarrier_arrive: "arrive at the mbarrier in", mbarrier_wait: "wait at the mbarrier in", mbarrier_wait_done: "pass the mbarrier in",
  };
  const ENGINE = new Set(["bulk_read", "bulk_write", "copy_complete", "mbarrier_init", "mbarrier_arrive", "mbarrier_wait", "mbarrier_wait_done"]);
  const RUNS = 0, WAITS = 1, ENDED = 2;

  const events = data.events.map(([kind, warp, mask, line, name, number, memory, size, offsets, values]) => ({
    kind: data.kinds[kind], warp, mask: (mask || 0) >>> 0, line: line || 0, memory: (memory || 0) - 1,
    size: size || 0, offsets, values, number: number || 0, name: name ? data.names[name - 1] : "",
  }));
  for (const event of events) {
    event.lanes = [];
    for (let lane = 0; lane < 32; ++lane) if (event.mask >>> lane & 1) event.lanes.push(lane);
    const at = event.offsets;
    if (!at) event.offsets = [];
    else if (at.length === 3) event.offsets = data.patterns[at[2]].map((offset) => at[0] + offset);
    else event.offsets = event.lanes.length ? event.lanes.map((_, i) => at[0] + i * at[1]) : [at[0]];
  }
  const count = events.length;
  const warps = Math.ceil(data.threads / 32);
  const memories = data.memories;
  const shared = memories.map((memory, i) => i).filter((i) => memories[i].space === "shared" && memories[i].bytes > 0)
    .sort((a, b) => memories[a].start - memories[b].start);

  // --- the state after the steps so far ---

  const begin = () => ({
    lanes: new Uint8Array(data.threads),
    why: new Array(data.threads).fill(""),
    barrier: new Int8Array(data.threads).fill(-1),
    words: new Map(shared.map((i) => [i, new Uint8Array(Math.ceil(memories[i].bytes / 4))])),
    values: new Map(shared.map((i) => [i, new Array(Math.ceil(memories[i].bytes / memories[i].element))])),
  });
  const copyOf = (state) => ({
    lanes: state.lanes.slice(), why: state.why.slice(), barrier: state.barrier.slice(),
    words: new Map([...state.words].map(([i, words]) => [i, words.slice()])),
    values: new Map([...state.values].map(([i, values]) => [i, values.slice()])),
  });
  // The 4-byte words that `size` bytes at a byte offset touch.
  function wordsAt(offset, size) {
    const first = Math.floor(offset / 4);
    return Array.from({ length: Math.floor((offset + size - 1) / 4) - first + 1 }, (_, i) => first + i);
  }
  const place = (event) => event.line ? `line ${event.line}` : "";
  const memoryName = (event) => event.memory < 0 ? "" : memories[event.memory].name;

  function apply(state, event) {
    const { kind } = event;
    if (kind === "barrier_complete")
      for (let t = 0; t < data.threads; ++t)
        if (state.lanes[t] === WAITS && state.barrier[t] === event.number) state.lanes[t] = RUNS;
    if (kind === "barrier_complete" || kind === "mbarrier_phase_complete") return;
    const waits = kind === "barrier_wait" || kind === "warp_wait" || kind === "blocked" || kind === "mbarrier_wait";
    for (const lane of event.lanes) {
      const t = event.warp * 32 + lane;
      state.lanes[t] = waits ? WAITS : kind === "thread_exit" ? ENDED : RUNS;
      if (!waits) continue;
      state.why[t] = `${event.name || "the mbarrier " + memoryName(event)}, ${place(event) || "in a header"}`;
      state.barrier[t] = kind === "barrier_wait" ? event.number : -1;
    }
    if (!WRITES.has(kind) || !state.words.has(event.memory)) return;
    const memory = memories[event.memory], words = state.words.get(event.memory), values = state.values.get(event.memory);
    const under = kind === "async_write" || kind === "bulk_write";
    const per = Math.max(1, Math.floor(event.size / memory.element));
    event.offsets.forEach((offset, i) => {
      const at = offset - memory.start;
      for (const word of wordsAt(at, event.size)) if (word in words) words[word] = under ? 2 : 1;
      const first = Math.floor(at / memory.element);
      for (let k = 0; k < per && event.size <= 16; ++k)
        if (first + k >= 0 && first + k < values.length)
          values[first + k] = event.values && event.values.length ? event.values.length === 1 ? event.values[0] : event.values[i * per + k] : undefined;
    });
  }

  const frames = [begin()];
  let current = frames[0], at = 0; // the state before step `at + 1`
  function stateAfter(step) {
    let frame = Math.min(Math.floor(step / KEYFRAME), frames.length - 1);
    let state, from;
    if (at <= step && at >= frame * KEYFRAME) { state = current; from = at; }
    else { state = copyOf(frames[frame]); from = frame * KEYFRAME; }
    for (let i = from; i < step; ++i) {
      apply(state, events[i]);
      if ((i + 1) % KEYFRAME === 0 && frames.length === (i + 1) / KEYFRAME) frames.push(copyOf(state));
    }
    if (state === frames[0]) state = copyOf(state);
    current = state;
    at = step;
    return state;
  }

  // --- the cost of a request, as the simulator counts it ---

  function sectorsOf(event) {
    const base = memories[event.memory].start, sectors = new Map();
    event.offsets.forEach((offset, i) => {
      for (let byte = offset + base; byte < offset + base + event.size; byte += Math.min(4, event.size)) {
        const sector = Math.floor(byte / 32), word = Math.floor((byte - sector * 32) / 4);
        if (!sectors.has(sector)) sectors.set(sector, Array.from({ length: 8 }, () => []));
        const lanes = sectors.get(sector)[word];
        if (!lanes.includes(event.lanes[i])) lanes.push(event.lanes[i]);
      }
    });
    return [...sectors].sort((a, b) => a[0] - b[0]);
  }
  function idealSectors(event) {
    const bytes = new Set();
    for (const offset of event.offsets) for (let i = 0; i < event.size; ++i) bytes.add(offset + i);
    return Math.ceil(bytes.size / 32);
  }
  // The parts of a request that shared memory serves one after another (see checks/counting/request.cpp): half warps for
  // 8-byte accesses, quarter warps for 16 bytes; two neighboring parts together for reads whose neighbors agree.
  const isWrite = (event) => event.kind.endsWith("write");
  function partsOf(event) {
    const all = event.lanes.map((_, i) => i);
    if (event.size < 8 || event.kind === "atomic") return [all];
    const at = new Map(event.lanes.map((lane, i) => [lane, event.offsets[i]]));
    const agree = (distance) => event.lanes.every((lane, i) => !at.has(lane ^ distance) || at.get(lane ^ distance) === event.offsets[i]);
    const lanes = 128 / event.size * (!isWrite(event) && (agree(1) || agree(2)) ? 2 : 1), parts = new Map();
    for (const i of all) {
      const part = Math.floor(event.lanes[i] / lanes);
      parts.set(part, [...(parts.get(part) || []), i]);
    }
    return [...parts.values()];
  }
  // The wavefronts, each with the lanes that every bank serves; and the minimum number of wavefronts.
  function wavefrontsOf(event) {
    const rows = [], atomic = event.kind === "atomic";
    let words = 0;
    for (const part of partsOf(event)) {
      const banks = Array.from({ length: 32 }, () => new Map());
      for (const i of part)
        for (const word of wordsAt(event.offsets[i], event.size)) {
          const served = banks[word % 32], key = atomic ? `${word}:${event.lanes[i]}` : word; // atomics take turns
          if (!served.has(key)) served.set(key, []);
          served.get(key).push(event.lanes[i]);
        }
      words += banks.reduce((sum, served) => sum + served.size, 0);
      const height = Math.max(...banks.map((served) => served.size));
      for (let row = 0; row < height; ++row) rows.push({ first: row === 0, banks: banks.map((served) => [...served.values()][row] || []) });
    }
    let least = event.size > 8 && !atomic && event.lanes[0] < 16 && event.lanes[event.lanes.length - 1] >= 16 ? 2 : 1;
    if (isWrite(event) && event.size > 4) least = partsOf(event).length;
    if (atomic) {
      const same = new Map();
      for (const offset of event.offsets) same.set(Math.floor(offset / 4), (same.get(Math.floor(offset / 4)) || 0) + 1);
      least = Math.max(...same.values());
    }
    return { rows, ideal: Math.min(rows.length, Math.max(least, Math.ceil(words / 32))) };
  }
  const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
  const isGlobal = (event) => event.memory >= 0 && memories[event.memory].space === "global";
  const isShared = (event) => event.memory >= 0 && memories[event.memory].space === "shared";
  const isRequest = (event) => !ENGINE.has(event.kind) && event.lanes.length > 0 && event.offsets.length === event.lanes.length;
  function cost(event) {
    if (!isRequest(event)) return event.size > 16 ? `${event.size.toLocaleString("en")} bytes` : "";
    if (isGlobal(event)) {
      const n = sectorsOf(event).length, ideal = idealSectors(event);
      return `${plural(n, "sector")}, ${n === ideal ? "the minimum" : "minimum " + ideal}`;
    }
    if (isShared(event)) {
      const { rows, ideal } = wavefrontsOf(event), n = rows.length;
      if (n === ideal) return `${plural(n, "wavefront")}, ${n === 1 ? "no bank conflict" : "the minimum"}`;
      return `${plural(n, "wavefront")}, minimum ${ideal}: a ${Number((n / ideal).toFixed(1))}-way bank conflict`;
    }
    return "";
  }

  // --- words ---

  function ranges(lanes) {
    const parts = [];
    for (let i = 0; i < lanes.length;) {
      let j = i;
      while (j + 1 < lanes.length && lanes[j + 1] === lanes[j] + 1) ++j;
      parts.push(j > i ? `${lanes[i]}-${lanes[j]}` : `${lanes[i]}`);
      i = j + 1;
    }
    return parts.length > 6 ? `${plural(lanes.length, "lane")}` : `${lanes.length === 1 ? "lane" : "lanes"} ${parts.join(", ")}`;
  }
  function touched(event) {
    const memory = memories[event.memory], base = memory.space === "shared" ? memory.start : 0;
    const index = event.offsets.map((offset) => Math.floor((offset - base) / memory.element));
    const low = Math.min(...index), high = Math.max(...index) + Math.max(1, Math.floor(event.size / memory.element)) - 1;
    return `${memory.name}[${low === high ? low : `${low} to ${high}`}]`;
  }
  function unready(event, state) {
    if (!READS.has(event.kind) && event.kind !== "atomic" || !state.words.has(event.memory)) return "";
    const words = state.words.get(event.memory), start = memories[event.memory].start, found = [new Set(), new Set(), new Set()];
    for (const word of event.offsets.flatMap((offset) => wordsAt(offset - start, event.size)))
      if (word in words) found[words[word]].add(word);
    return (found[0].size ? `; ${plural(found[0].size, "word")} not yet written` : "") +
      (found[2].size ? `; ${plural(found[2].size, "word")} with a copy in flight` : "");
  }
  function sentence(event, state) {
    const who = event.warp < 0 ? "the block" : `warp ${event.warp}, ${ranges(event.lanes)}`;
    const one = event.lanes.length === 1;
    const verb = (many, single) => one ? single : many;
    const where = place(event) ? `, ${place(event)}` : "";
    switch (event.kind) {
      case "barrier_complete": return "the barrier is complete: its threads continue";
      case "mbarrier_phase_complete": return `a phase of the mbarrier ${memoryName(event)} is complete`;
      case "barrier_wait": return `${who}${where}: ${verb("wait", "waits")} at ${event.name}`;
      case "warp_wait": return `${who}${where}: ${verb("wait", "waits")} at ${event.name} for the other lanes`;
      case "blocked": return `${who}${where}: still ${verb("wait", "waits")} at ${event.name} when the launch ended`;
      case "barrier_arrive": return `${who}${where}: ${verb("arrive", "arrives")} at barrier ${event.number} and ${verb("continue", "continues")}`;
      case "barrier_wait_done": return `${who}${where}: ${verb("pass", "passes")} the barrier of the cluster`;
      case "warp_sync": return `${who}${where}: ${event.name}`;
      case "thread_exit": return `${who}: ${verb("end", "ends")}`;
      case "cp_async_commit": return `${who}${where}: ${verb("commit", "commits")} the copies so far as a group`;
      case "cp_async_wait": return `${who}${where}: ${verb("wait", "waits")} until at most ${plural(event.number, "group")} of copies ${event.number === 1 ? "is" : "are"} in flight`;
    }
    const space = isShared(event) ? "shared memory" : isGlobal(event) ? "global memory" : memories[event.memory].space + " memory";
    const said = cost(event);
    let text = `${who}${where}: ${VERBS[event.kind] || event.kind} ${touched(event)} in ${space}${said ? ": " + said : ""}`;
    if (event.kind === "read" && event.values)
      text += `; saw ${event.values.slice(0, 4).join(", ")}${event.values.length > 4 ? ", ..." : ""}, not what is shown below: lanes race here`;
    return text + unready(event, state);
  }

  // --- the page ---

  const about = [`Block (${data.block.join(", ")}) of a grid of (${data.grid.join(", ")}), ${plural(data.threads, "thread")} in ${plural(warps, "warp")}, ${plural(count, "step")}.`];
  if (data.cut) about.push(`The recording is not complete: the block's later steps${data.left_out ? ` (${data.left_out.toLocaleString("en")} or more)` : ""} are not shown.`);
  el("about").textContent = about.join(" ");

  const stepsOn = new Map();
  events.forEach((event, i) => {
    if (!event.line) return;
    if (!stepsOn.has(event.line)) stepsOn.set(event.line, []);
    stepsOn.get(event.line).push(i + 1);
  });
  const rows = new Map();
  data.source.forEach((text, i) => {
    const line = data.first_line + i, item = document.createElement("li");
    const number = document.createElement(stepsOn.has(line) ? "button" : "span");
    number.className = "number";
    number.textContent = line;
    if (stepsOn.has(line)) {
      number.type = "button";
      number.setAttribute("aria-label", `Line ${line}: to its next step`);
      number.addEventListener("click", () => {
        const steps = stepsOn.get(line);
        go(steps.find((other) => other > step) || steps[0]);
      });
    }
    item.append(number, document.createTextNode(text));
    rows.set(line, item);
    el("source").append(item);
  });

  const table = [];
  for (let w = 0; w < warps; ++w) {
    const row = el("warps").tBodies[0].insertRow(), head = document.createElement("th"), cell = row.insertCell(), why = document.createElement("div");
    head.scope = "row";
    head.textContent = `warp ${w}`;
    row.prepend(head);
    const lanes = [];
    const strip = document.createElement("span");
    strip.className = "lanes";
    strip.setAttribute("aria-hidden", "true"); // the text beside it has the same information
    for (let lane = 0; lane < 32 && w * 32 + lane < data.threads; ++lane) strip.append(lanes[lane] = document.createElement("i"));
    cell.append(strip, why);
    why.className = "why";
    table.push({ row, lanes, why, shown: "" });
  }

  function warpRow(w, state, event) {
    let key = "";
    const reasons = new Map();
    let active = 0, ended = 0;
    const here = table[w];
    for (let lane = 0; lane < here.lanes.length; ++lane) {
      const t = w * 32 + lane, takes = event && event.warp === w && event.mask >>> lane & 1;
      const mark = state.lanes[t] === WAITS ? "W" : state.lanes[t] === ENDED ? "x" : takes ? "●" : "·";
      if (mark === "W") reasons.set(state.why[t], (reasons.get(state.why[t]) || 0) + 1);
      if (mark === "●") ++active;
      if (mark === "x") ++ended;
      key += mark;
    }
    const said = [...reasons].map(([why, n]) => `${n === here.lanes.length ? "waits" : plural(n, "lane") + (n === 1 ? " waits" : " wait")} at ${why}`);
    if (active) said.unshift(active === here.lanes.length ? "all lanes" : plural(active, "lane"));
    if (ended) said.push(ended === here.lanes.length ? "has ended" : `${plural(ended, "lane")} ended`);
    const now = event && event.warp === w;
    key += said.join("; ") + now;
    if (key === here.shown) return;
    here.shown = key;
    here.row.className = now ? "now" : "";
    here.why.textContent = said.join("; ");
    here.lanes.forEach((item, lane) => {
      const mark = key[lane];
      if (item.textContent === mark) return;
      item.textContent = mark;
      item.className = { W: "wait", x: "out", "●": "act", "·": "idle" }[mark];
    });
  }

  function cell(text, name) {
    const item = document.createElement("span");
    item.textContent = text;
    if (name) item.className = name;
    return item;
  }
  const owner = (lanes) => lanes.length ? lanes.length > 1 ? `${lanes[0]}+` : `${lanes[0]}` : "";

  let requestShown = null;
  function drawRequest(event) {
    const drawn = event && isRequest(event) && (isGlobal(event) || isShared(event)) ? event : null;
    if (drawn === requestShown && drawn) return;
    requestShown = drawn;
    const box = el("request");
    box.textContent = "";
    box.className = "";
    if (!drawn) {
      el("request-text").textContent = "This step is not a memory access by lanes.";
      return;
    }
    if (isGlobal(drawn)) {
      const sectors = sectorsOf(drawn), base = memories[drawn.memory].start;
      el("request-text").textContent = `${memoryName(drawn)} in global memory, ${cost(drawn)}. A row is a sector of 32 bytes; each box is 4 bytes, with the lane that touches them.`;
      box.className = "cells sectors";
      for (const [sector, words] of sectors) {
        box.append(cell(`+${sector * 32 - base}`, "label"));
        for (const lanes of words) box.append(cell(owner(lanes), lanes.length ? "hit" : ""));
      }
      return;
    }
    el("request-text").textContent = `${memoryName(drawn)} in shared memory, ${cost(drawn)}. A column is a bank, a row a wavefront; each box has the lane that it serves.`;
    box.className = "cells banks";
    box.append(cell("bank", "label"));
    for (let bank = 0; bank < 32; ++bank) box.append(cell(bank, "label"));
    wavefrontsOf(drawn).rows.forEach(({ first, banks }, i) => {
      box.append(cell(i + 1, "label"));
      for (const lanes of banks) box.append(cell(owner(lanes), lanes.length ? first ? "hit" : "many" : ""));
    });
  }

  // One canvas per array; only changed words are redrawn.
  const pictures = shared.map((i) => {
    const memory = memories[i], title = document.createElement("p"), canvas = document.createElement("canvas");
    const box = document.createElement("div");
    box.className = "array";
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", `The words of ${memory.name}`);
    box.append(canvas);
    title.textContent = `${memory.name}, ${memory.bytes.toLocaleString("en")} bytes`;
    canvas.setAttribute("role", "img");
    el("shared").append(title, box);
    return { memory: i, canvas, box, drawn: [], cell: 0, high: 0, said: "" };
  });
  if (!pictures.length) el("shared-section").hidden = true;
  let colors = {};
  function measure() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "quiet", "paper", "line", "accent", "fill", "flight", "bad"]) colors[name] = style.getPropertyValue(`--${name}`).trim();
    const ratio = window.devicePixelRatio || 1;
    for (const picture of pictures) {
      const width = picture.canvas.clientWidth || 640, words = Math.ceil(memories[picture.memory].bytes / 4);
      picture.cell = width / 32;
      picture.high = Math.max(8, Math.min(20, words > 2048 ? 8 : picture.cell));
      picture.canvas.width = Math.round(width * ratio);
      picture.canvas.height = Math.round(Math.ceil(words / 32) * picture.high * ratio);
      picture.canvas.style.height = `${Math.ceil(words / 32) * picture.high}px`;
      picture.pen = picture.canvas.getContext("2d");
      picture.pen.scale(ratio, ratio);
      picture.drawn = [];
    }
  }
  function valueText(value) {
    if (value === undefined || value === null) return "";
    return typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(3).replace(/\.?0+$/, "") : String(value);
  }
  function drawShared(state, event) {
    for (const picture of pictures) {
      const words = state.words.get(picture.memory), values = state.values.get(picture.memory), memory = memories[picture.memory];
      const now = new Map();
      if (event && event.memory === picture.memory)
        for (const offset of event.offsets)
          for (const word of wordsAt(offset - memory.start, event.size)) now.set(word, READS.has(event.kind) ? 1 : 2);
      const { pen, cell: wide, high } = picture;
      let written = 0;
      for (let word = 0; word < words.length; ++word) {
        if (words[word] === 1) ++written;
        const text = wide >= 26 ? valueText(values[Math.floor(word * 4 / memory.element)]) : "";
        const key = `${words[word]}${now.get(word) || 0}${text}`;
        if (picture.drawn[word] === key) continue;
        picture.drawn[word] = key;
        const x = word % 32 * wide, y = Math.floor(word / 32) * high;
        pen.fillStyle = words[word] === 1 ? colors.fill : words[word] === 2 ? colors.flight : colors.paper;
        pen.fillRect(x, y, wide, high);
        pen.strokeStyle = colors.line;
        pen.lineWidth = 0.5;
        pen.strokeRect(x + 0.25, y + 0.25, wide - 0.5, high - 0.5);
        if (words[word] === 2) {
          pen.beginPath();
          pen.moveTo(x, y + high);
          pen.lineTo(x + wide, y);
          pen.stroke();
        }
        if (now.has(word)) {
          pen.strokeStyle = colors.accent;
          pen.lineWidth = 2;
          pen.setLineDash(now.get(word) === 1 ? [3, 2] : []);
          pen.strokeRect(x + 1.5, y + 1.5, wide - 3, high - 3);
          pen.setLineDash([]);
        }
        if (text) {
          pen.fillStyle = colors.ink;
          pen.font = "9.5px ui-monospace, Menlo, Consolas, monospace";
          pen.textAlign = "center";
          pen.textBaseline = "middle";
          pen.fillText(text, x + wide / 2, y + high / 2 + 0.5, wide - 3);
        }
      }
      const rows = [...now.keys()].map((word) => Math.floor(word / 32) * high), top = Math.min(...rows), box = picture.box;
      if (rows.length && (top < box.scrollTop || top + high > box.scrollTop + box.clientHeight)) box.scrollTop = top - high;
      const said = `${memory.name}: ${written} of ${words.length} words are written${now.size ? `, ${now.size} touched in this step` : ""}`;
      if (said !== picture.said) picture.canvas.setAttribute("aria-label", picture.said = said);
    }
  }

  let step = 0, timer = 0, lit = null;
  function render() {
    const event = events[step - 1], state = stateAfter(step);
    const row = event && rows.get(event.line);
    if (row !== lit) {
      if (lit) { lit.classList.remove("now"); lit.removeAttribute("aria-current"); }
      lit = row || null;
      if (lit) {
        lit.classList.add("now");
        lit.setAttribute("aria-current", "step");
        const box = el("source-box"), top = lit.offsetTop - box.offsetTop;
        if (top < box.scrollTop + 20 || top > box.scrollTop + box.clientHeight - 40) box.scrollTop = top - box.clientHeight / 2;
      }
    }
    for (let w = 0; w < warps; ++w) warpRow(w, state, event);
    drawRequest(event);
    drawShared(state, event);
    const text = event ? `Step ${step} of ${count}: ${sentence(event, state)}.` : "No step of this block was recorded.";
    if (el("summary").textContent !== text) el("summary").textContent = text;
    el("scrub").value = step;
    el("scrub").setAttribute("aria-valuetext", `step ${step} of ${count}`);
    el("first").disabled = el("back").disabled = step <= 1;
    el("last").disabled = el("next").disabled = step >= count;
    el("barrier").disabled = nextBarrier() === undefined;
  }
  function go(to) {
    step = Math.max(count ? 1 : 0, Math.min(count, to));
    render();
  }
  const barriers = events.flatMap((event, i) => event.kind === "barrier_complete" ? [i + 1] : []);
  const nextBarrier = () => barriers.find((other) => other > step);
  function pause() {
    clearInterval(timer);
    timer = 0;
    el("play").textContent = "Play";
    el("summary").setAttribute("aria-live", "polite");
  }
  function play() {
    if (timer) return pause();
    if (step >= count) go(1);
    el("play").textContent = "Pause";
    el("summary").setAttribute("aria-live", "off"); // steps are too fast for a screen reader
    timer = setInterval(() => step < count ? go(step + 1) : pause(), 1000 / Number(el("speed").value));
  }
  const stopAnd = (action) => () => { if (timer) pause(); action(); };
  // Disabling the focused button would lose the focus: move it to another button.
  function keepFocus(id, other) {
    if (el(id).disabled && (document.activeElement === el(id) || document.activeElement === document.body)) el(other).focus();
  }
  el("first").addEventListener("click", stopAnd(() => { go(1); keepFocus("first", "next"); }));
  el("back").addEventListener("click", stopAnd(() => { go(step - 1); keepFocus("back", "next"); }));
  el("next").addEventListener("click", stopAnd(() => { go(step + 1); keepFocus("next", "back"); }));
  el("last").addEventListener("click", stopAnd(() => { go(count); keepFocus("last", "back"); }));
  el("barrier").addEventListener("click", stopAnd(() => { go(nextBarrier() || count); keepFocus("barrier", "back"); }));
  el("play").addEventListener("click", play);
  el("speed").addEventListener("change", () => { if (timer) { pause(); play(); } });
  el("scrub").max = count;
  el("scrub").addEventListener("input", stopAnd(() => go(Number(el("scrub").value))));
  document.addEventListener("keydown", (pressed) => {
    if (pressed.ctrlKey || pressed.metaKey || pressed.altKey || pressed.target.closest("input, select")) return;
    const onButton = pressed.target.closest("button");
    const scrolls = pressed.target.closest(".source, .warps, .scroll, .array");
    const actions = {
      ArrowRight: scrolls ? null : () => go(step + 1), ArrowLeft: scrolls ? null : () => go(step - 1),
      Home: () => go(1), End: () => go(count), b: () => go(nextBarrier() || step),
    };
    if (pressed.key === " " && !onButton && !scrolls) play();
    else if (actions[pressed.key]) stopAnd(actions[pressed.key])();
    else return;
    pressed.preventDefault();
  });

  for (const finding of data.findings) {
    const item = document.createElement("li"), colon = finding.text.indexOf(":"), strong = document.createElement("strong");
    strong.textContent = finding.text.slice(0, colon + 1);
    item.append(strong, finding.text.slice(colon + 1));
    finding.steps.forEach((to, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = finding.steps.length > 1 ? `Side ${i + 1}: step ${to}` : `Step ${to}`;
      button.addEventListener("click", stopAnd(() => go(to)));
      item.append(button);
    });
    el("findings").append(item);
  }
  el("found").hidden = !data.findings.length;

  measure();
  go(data.start || 1);
  let resizing = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(resizing);
    resizing = requestAnimationFrame(() => { measure(); render(); });
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { measure(); render(); });
})();
