// The URL fragment holds the state, so that a view can be linked to: report, sort, desc, filter, page, case, theme. All
// text is inserted as text, never as markup.
(() => {
  const PAGE = 100;
  // Text columns that are not part of a case's name.
  const UNNAMED = ["check", "verdict", "why", "times", "changed at"];
  // A longer text is broken into lines.
  const LONG = 40;
  const root = document.documentElement;
  const sections = [...document.querySelectorAll("section.report")];
  const loaded = new Map();
  let state = {};

  window.addEventListener("error", (event) => { root.dataset.error = event.message; });

  function make(tag, content, name) {
    const element = document.createElement(tag);
    if (name) element.className = name;
    for (const part of [content].flat()) {
      if (part !== undefined && part !== null) element.append(part);
    }
    return element;
  }

  function read() {
    const found = {};
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) found[name] = value;
    return found;
  }

  function go(changes) {
    const next = { ...state, ...changes };
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries(next)) {
      if (value !== undefined && value !== null && value !== "") words.set(name, value);
    }
    history.replaceState(null, "", "#" + words);
    show();
  }

  // The system's theme, unless the reader chose one.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const themes = ["auto", "light", "dark"];
  function kept() {
    try { return localStorage.getItem("theme"); } catch { return null; }
  }
  function theme() {
    const wanted = state.theme || kept();
    const chosen = themes.includes(wanted) ? wanted : "auto";
    root.dataset.theme = chosen === "auto" ? (system.matches ? "dark" : "light") : chosen;
    const button = document.getElementById("theme");
    button.textContent = "theme: " + chosen;
    button.onclick = () => {
      const next = themes[(themes.indexOf(chosen) + 1) % themes.length];
      try { localStorage.setItem("theme", next); } catch { /* Local files may have no storage. */ }
      go({ theme: next });
    };
  }
  system.addEventListener("change", theme);

  // A report's data is parsed when the report is first shown.
  function data(section) {
    const key = section.dataset.report;
    if (!loaded.has(key)) {
      const found = JSON.parse(section.querySelector("script.data").textContent);
      found.best = new Set(found.best);
      loaded.set(key, found);
    }
    return loaded.get(key);
  }

  const text = filter.cell;
  const isNumber = (column) => column.values !== undefined;

  function ordered(report, section) {
    const { keeps, faults } = filter.parse(report.columns, state.filter || "");
    const fault = section.querySelector(".fault");
    fault.hidden = faults.length === 0;
    fault.textContent = "Ignored (not understood): " + faults.join("; ");
    section.querySelector(".filter").setAttribute("aria-invalid", String(faults.length > 0));
    const rows = [];
    for (let row = 0; row < report.rows; row += 1) if (keeps(row)) rows.push(row);
    const column = report.columns.find((c) => c.key === state.sort);
    if (!column) return rows;
    const sign = state.desc ? -1 : 1;
    // Rows without a value come last in both directions.
    rows.sort((a, b) => {
      if (isNumber(column)) {
        const [x, y] = [column.values[a], column.values[b]];
        if (x === null || y === null) return (x === null) - (y === null) || a - b;
        return sign * (x - y) || a - b;
      }
      const [x, y] = [text(column, a) || "", text(column, b) || ""];
      return sign * (x < y ? -1 : x > y ? 1 : 0) || a - b;
    });
    return rows;
  }

  function head(report, section) {
    const cells = report.columns.map((column) => {
      const sorted = column.key === state.sort;
      // Long titles may break after underscores.
      const words = column.title.split(/(?<=_)/).flatMap((part) => [part, make("wbr")]);
      const button = make("button", [...words, sorted ? (state.desc ? " ▼" : " ▲") : ""]);
      button.type = "button";
      button.onclick = () => {
        const order = sorted ? (state.desc ? { sort: "", desc: "" } : { desc: "1" }) : { sort: column.key, desc: "" };
        go({ ...order, page: "", case: "" });
      };
      const cell = make("th", button, isNumber(column) ? "number" : "");
      cell.setAttribute("aria-sort", sorted ? (state.desc ? "descending" : "ascending") : "none");
      return cell;
    });
    section.querySelector(".cases thead").replaceChildren(make("tr", cells));
  }

  function table(report, section) {
    const rows = ordered(report, section);
    const last = Math.max(Math.ceil(rows.length / PAGE) - 1, 0);
    const open = state.case === undefined || state.case === "" ? -1 : Number(state.case);
    const asked = state.page === undefined && open >= 0 ? Math.floor(rows.indexOf(open) / PAGE) : Number(state.page || 0);
    const page = Math.min(Math.max(asked, 0), last);
    const body = [];
    for (const row of rows.slice(page * PAGE, (page + 1) * PAGE)) {
      const kind = (c) => (isNumber(c) ? "number" : "") + ((text(c, row) || "").length > LONG ? " long" : "");
      const cells = report.columns.map((c) => make("td", text(c, row) || "", kind(c)));
      const line = make("tr", cells, "case" + (row === open ? " open" : "") + (report.best.has(row) ? " best" : ""));
      line.dataset.row = row;
      line.tabIndex = 0;
      line.onclick = () => go({ case: row === open ? "" : row, page });
      line.onkeydown = (event) => { if (event.key === "Enter") line.onclick(); };
      body.push(line);
      if (row === open) {
        const cell = make("td", details(report, row));
        cell.colSpan = report.columns.length;
        body.push(make("tr", cell, "details"));
      }
    }
    section.querySelector(".cases tbody").replaceChildren(...body);
    section.querySelector(".count").textContent = rows.length + " of " + report.rows + " rows";
    pages(section, page, last);
  }

  function pages(section, page, last) {
    const step = (label, to) => {
      const button = make("button", label);
      button.type = "button";
      button.disabled = to < 0 || to > last;
      button.onclick = () => go({ page: to, case: "" });
      return button;
    };
    const parts = last > 0 ? [step("‹", page - 1), " page " + (page + 1) + " of " + (last + 1) + " ", step("›", page + 1)] : [];
    section.querySelector(".pages").replaceChildren(...parts);
  }

  function list(pairs) {
    const parts = pairs.flatMap(([name, value]) => [make("dt", name), make("dd", value)]);
    return make("dl", parts);
  }

  function grid(titles, rows) {
    const line = (tag, cells) => make("tr", cells.map((cell) => make(tag, cell)));
    return make("table", [make("thead", line("th", titles)), make("tbody", rows.map((row) => line("td", row)))]);
  }

  function details(report, row) {
    const facts = report.facts[row];
    const named = report.columns.filter((column) => column.texts && !UNNAMED.includes(column.key) && text(column, row));
    const title = named.map((column) => (column.key === "variant" ? "" : column.title + " = ") + text(column, row));
    const pairs = [];
    for (let i = 0; i < facts.pairs.length; i += 2) {
      pairs.push([report.names[facts.pairs[i]], report.strings[facts.pairs[i + 1]]]);
    }
    const parts = [make("h4", title.join(", ")), list(pairs)];
    if (facts.lanes) parts.push(make("h4", "Times, with their intervals" + (facts.lanes.some((lane) => lane.samples) ? " and samples" : "")), times.lanes(report.unit, facts.lanes));
    if (facts.counts) parts.push(make("h4", "Counts that differ"), grid(["counter", "base", "new"], facts.counts));
    const launches = report.launches ? report.launches[facts.launches] : [];
    if (launches.length > 0) {
      parts.push(make("h4", "Launches and compiled code"), grid(report.launchTitles, launches));
    }
    if (facts.counters) {
      const counted = facts.counters.map((value, i) => [report.counters[i], value]).filter((pair) => pair[1] !== null);
      const content = [make("summary", counted.length + " counters"), grid(["counter", "count"], counted)];
      parts.push(make("details", content));
    }
    if (facts.lines) parts.push(make("h4", "Lines with the largest counts"), grid(...facts.lines));
    if (facts.page) {
      const link = make("a", "Sources, PTX and machine code, line by line");
      link.href = facts.page.split("/").map(encodeURIComponent).join("/");
      parts.push(make("p", [link]));
    }
    if (facts.samples) parts.push(make("h4", facts.samples.length + " samples, in the order of rounds"), times.strip(report.unit, facts));
    else if (report.noSamples) parts.push(make("p", report.noSamples, "dim"));
    const source = facts.source === undefined ? null : report.sources[facts.source];
    for (const file of source || []) {
      const content = [make("summary", "Source: " + file.name), make("pre", file.text)];
      parts.push(make("details", content));
    }
    if (!source && report.noSource) parts.push(make("p", report.noSource, "dim"));
    return make("div", parts);
  }

  // Shows a mark's title at the pointer: the browser would show it late or not at all.
  const tip = document.getElementById("tip");
  for (const title of document.querySelectorAll(".chart rect > title, .chart path > title")) {
    title.parentNode.setAttribute("data-about", title.textContent);
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest ? event.target.closest("[data-about]") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.getAttribute("data-about");
    tip.style.left = Math.min(event.clientX + 14, innerWidth - 440) + "px";
    tip.style.top = event.clientY + 16 + "px";
  });

  function show() {
    state = read();
    theme();
    const index = document.getElementById("index");
    const chosen = index ? state.report : "0";
    if (index) index.hidden = chosen !== undefined;
    let back = document.getElementById("back");
    if (index && !back) {
      back = make("a", "all reports");
      back.id = "back";
      back.href = "#";
      document.querySelector("header").append(back);
    }
    if (back) back.hidden = chosen === undefined;
    for (const section of sections) {
      section.hidden = section.dataset.report !== chosen;
      if (section.hidden) continue;
      const report = data(section);
      const input = section.querySelector(".filter");
      if (input !== document.activeElement) input.value = state.filter || "";
      input.oninput = () => go({ filter: input.value, page: "", case: "" });
      head(report, section);
      table(report, section);
    }
    root.dataset.ready = "yes";
  }

  window.addEventListener("hashchange", show);
  show();
})();
