"use strict";
// Table filter. A query is a list of terms that must all hold: a comparison with a column (`n >= 2^24`,
// `time < 100 µs`, `variant != cpu`), or text that a cell contains. Terms that cannot be parsed are reported and ignored.
const filter = (() => {
  const OPERATORS = { "≤": "<=", "≥": ">=", "≠": "!=", "==": "=" };
  const COMPARE = {
    "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b,
    "=": (a, b) => Math.abs(a - b) <= 1e-5 * Math.abs(b), "!=": (a, b) => Math.abs(a - b) > 1e-5 * Math.abs(b),
  };
  // Time units in nanoseconds, and size units.
  const TIMES = { ns: 1, "µs": 1e3, "μs": 1e3, us: 1e3, ms: 1e6, s: 1e9 };
  const SIZES = { k: 1e3, ki: 1024, kib: 1024, mi: 2 ** 20, mib: 2 ** 20, gi: 2 ** 30, gib: 2 ** 30 };
  const OPERATOR = /^\s*(<=|>=|==|!=|[<>=≤≥≠])\s*/;
  const VALUE = /^(?:"([^"]*)"?|([^\s",]+))/;
  const NUMBER = /^([+-]|−)?(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)(?:(?:\^|\*\*)(\d+))?\s*(.*)$/i;

  // The column named before an operator: the longest full name that matches, else the only name with that prefix.
  function named(columns, text) {
    const names = columns.flatMap((column) => {
      const short = column.title.replace(/ \([^)]*\)$/, "");
      return [column.title, short, column.key].map((name) => ({ name: name.toLowerCase(), column }));
    });
    names.sort((a, b) => b.name.length - a.name.length);
    const lower = text.toLowerCase();
    const whole = names.find(({ name }) => lower.startsWith(name) && OPERATOR.test(text.slice(name.length)));
    if (whole) return { column: whole.column, rest: text.slice(whole.name.length) };
    const found = /^([^\s<>=!≤≥≠"]+)(?=\s*(?:<=|>=|==|!=|[<>=≤≥≠]))/.exec(text);
    if (!found) return null;
    const begins = new Set(names.filter(({ name }) => name.startsWith(found[1].toLowerCase())).map(({ column }) => column));
    return { column: begins.size === 1 ? [...begins][0] : null, name: found[1], rest: text.slice(found[1].length) };
  }

  // Parses a number as formatted on the page, in the column's unit; null if it is not a number.
  function number(text, column) {
    const found = NUMBER.exec(text);
    if (!found) return null;
    const unit = found[4].toLowerCase();
    let value = Number(found[2]);
    if (found[3] !== undefined) value **= Number(found[3]);
    if (found[1] && found[1] !== "+") value = -value;
    if (unit === "" || unit === "%" || unit === "×") return value * (column.scale || 1);
    if (TIMES[unit]) return column.scale ? value * TIMES[unit] : null;
    return SIZES[unit] ? value * SIZES[unit] * (column.scale || 1) : null;
  }

  const plain = (text) => text.toLowerCase().replace(/^[^\p{L}\p{N}]+\s/u, "");

  // Parses a comparison at the start of a text: its test or its fault, and the rest. Null for a plain word.
  function comparison(columns, text) {
    const about = named(columns, text);
    if (!about) return null;
    const [whole, sign] = OPERATOR.exec(about.rest);
    const operator = OPERATORS[sign] || sign;
    let rest = about.rest.slice(whole.length);
    const value = VALUE.exec(rest);
    const name = about.name || (about.column && about.column.title);
    if (!value) return { fault: `${name} ${sign}: value missing`, rest };
    rest = rest.slice(value[0].length);
    let wanted = value[1] !== undefined ? value[1] : value[2];
    if (!about.column) return { fault: `${name}: no such column`, rest };
    const { column } = about;
    const unit = /^\s+(%|×|[a-zµμ]+)(?=\s|$)/i.exec(rest);
    const isUnit = unit && value[1] === undefined && (unit[1] === "%" || unit[1] === "×" || TIMES[unit[1]] || SIZES[unit[1].toLowerCase()]);
    if (isUnit) {
      wanted += unit[1];
      rest = rest.slice(unit[0].length);
    }
    const limit = column.values && value[1] === undefined ? number(wanted, column) : null;
    if (limit !== null) {
      return { test: (row) => column.values[row] !== null && COMPARE[operator](column.values[row], limit), rest };
    }
    if (operator !== "=" && operator !== "!=") return { fault: `${name} ${sign} ${wanted}: not a number`, rest };
    const isSame = (row) => {
      const shown = cell(column, row) || "";
      return shown.toLowerCase() === wanted.toLowerCase() || plain(shown) === plain(wanted);
    };
    return { test: (row) => isSame(row) === (operator === "="), rest };
  }

  const cell = (column, row) => column.texts ? column.texts[column.cells[row]] : column.cells[row];

  // A word matches part of a cell's text. A sign such as ≈ may occur in a number too.
  function word(columns, wanted) {
    const isSign = !/[\p{L}\p{N}]/u.test(wanted);
    const searched = columns.filter((column) => isSign || column.texts);
    const lower = wanted.toLowerCase();
    return (row) => searched.some((column) => (cell(column, row) || "").toLowerCase().includes(lower));
  }

  // The tests of a query, and its faults. A case name, `a[n=1, m=2]`, is split into its parts.
  function parse(columns, query) {
    const [tests, faults] = [[], []];
    let rest = query.replace(/([^\s[\],]+)\[([^\]]*=[^\]]*)\]/g, "$1 $2").replace(/^[\s,]+/, "");
    while (rest) {
      const nameless = /^(<=|>=|==|!=|[<>=≤≥≠])\s*[^\s,]*/.exec(rest);
      const found = nameless ? { fault: `${nameless[0]}: column name missing`, rest: rest.slice(nameless[0].length) } : comparison(columns, rest);
      if (found) {
        if (found.fault) faults.push(found.fault); else tests.push(found.test);
        rest = found.rest;
      } else {
        const value = VALUE.exec(rest);
        const wanted = value[1] !== undefined ? value[1] : value[2];
        if (wanted && !/^(and|&&)$/i.test(wanted)) tests.push(word(columns, wanted));
        rest = rest.slice(value[0].length);
      }
      rest = rest.replace(/^[\s,]+/, "");
    }
    return { keeps: (row) => tests.every((test) => test(row)), faults };
  }

  return { parse, cell };
})();
