// Time plots: the samples of one case in order, and the distributions of several on one axis.
const times = (() => {
  const SVG = "http://www.w3.org/2000/svg";

  function draw(tag, attributes, text) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  const shown = (unit, time, digits) => (time / unit.scale).toPrecision(digits) + "\u00a0" + unit.name;

  // Samples from left to right, their median and its interval.
  function strip(unit, facts) {
    const [wide, tall, left] = [720, 140, 90];
    const [median, low, high] = facts.interval;
    const all = facts.samples.concat(facts.interval);
    const [least, most] = [Math.min(...all), Math.max(...all)];
    const span = most - least || most || 1;
    const y = (time) => 12 + (tall - 24) * (1 - (time - least) / span);
    const x = (i) => left + 8 + (wide - left - 16) * (facts.samples.length > 1 ? i / (facts.samples.length - 1) : 0.5);
    const label = (time) => draw("text", { x: left - 8, y: y(time) + 4, "text-anchor": "end", class: "tick" }, shown(unit, time, 5));
    const svg = draw("svg", { width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, class: "strip", role: "img" });
    svg.append(
      draw("rect", { x: left, y: y(high), width: wide - left, height: Math.max(y(low) - y(high), 1), class: "band" }),
      draw("line", { x1: left, x2: wide, y1: y(median), y2: y(median), class: "median" }),
      label(least), label(most),
    );
    facts.samples.forEach((time, i) => {
      const dot = draw("circle", { cx: x(i).toFixed(1), cy: y(time).toFixed(1), r: 2.5 });
      dot.setAttribute("data-about", `round ${facts.rounds[i]}: ${shown(unit, time, 6)}`);
      svg.append(dot);
    });
    return svg;
  }

  // Tick step of an axis: 1, 2 or 5 times a power of ten.
  function ticks(least, most) {
    const rough = (most - least) / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough);
    const found = [];
    for (let at = Math.ceil(least / step) * step; at <= most + step * 1e-9; at += step) found.push(at);
    return found;
  }

  // A lane for each side or revision, on a shared time axis: the median, its interval, and a dot for each sample, stacked
  // where several are close.
  function lanes(unit, all) {
    const [wide, right] = [620, 180];
    const left = 24 + 7.2 * Math.max(...all.map((lane) => lane.name.length));
    const tall = (lane) => lane.samples ? 64 : 24;
    const values = all.flatMap((lane) => [...(lane.samples || []), ...lane.interval]);
    let [least, most] = [Math.min(...values), Math.max(...values)];
    const margin = (most - least) * 0.03 || most * 0.01 || 1;
    [least, most] = [least - margin, most + margin];
    const x = (time) => left + (wide * (time - least)) / (most - least);
    const height = all.reduce((sum, lane) => sum + tall(lane), 0);
    const svg = draw("svg", {
      width: left + wide + right, height: height + 36, viewBox: `0 0 ${left + wide + right} ${height + 36}`,
      class: "strip", role: "img", "aria-label": "Times with their intervals and samples",
    });
    for (const tick of ticks(least / unit.scale, most / unit.scale)) {
      const at = x(tick * unit.scale);
      svg.append(
        draw("line", { x1: at, x2: at, y1: 0, y2: height, class: "grid" }),
        draw("text", { x: at, y: height + 16, "text-anchor": "middle", class: "tick" }, String(Number(tick.toPrecision(6)))),
      );
    }
    svg.append(draw("text", { x: left + wide / 2, y: height + 32, "text-anchor": "middle", class: "tick" }, `time (${unit.name})`));
    let top = 0;
    for (const lane of all) {
      const [median, low, high] = lane.interval;
      const [size, middle] = [tall(lane), top + tall(lane) / 2];
      const about = `${lane.name}: ${shown(unit, median, 5)}, interval ${shown(unit, low, 5)} to ${shown(unit, high, 5)}` +
        (lane.samples ? `, ${lane.samples.length} samples` : "");
      const band = draw("rect", { x: x(low), y: top + 3, width: Math.max(x(high) - x(low), 1), height: size - 6, class: "band" });
      band.setAttribute("data-about", about);
      svg.append(
        draw("text", { x: left - 12, y: middle + 4, "text-anchor": "end" }, lane.name),
        draw("line", { x1: left, x2: left + wide, y1: middle, y2: middle, class: "lane" }),
        band,
      );
      const piles = new Map();
      for (const time of lane.samples || []) {
        const place = Math.round(x(time) / 4);
        piles.set(place, [...(piles.get(place) || []), time]);
      }
      const highest = Math.max(1, ...[...piles.values()].map((pile) => pile.length));
      const step = Math.min(5, (size - 10) / highest);
      for (const [place, pile] of piles) {
        pile.forEach((time, i) => {
          const y = middle + (i - (pile.length - 1) / 2) * step;
          const dot = draw("circle", { cx: place * 4, cy: y.toFixed(1), r: 2 });
          dot.setAttribute("data-about", `${lane.name}: ${shown(unit, time, 6)}`);
          svg.append(dot);
        });
      }
      const line = draw("line", { x1: x(median), x2: x(median), y1: top + 2, y2: top + size - 2, class: "median" });
      line.setAttribute("data-about", about);
      svg.append(line);
      if (lane.note) svg.append(draw("text", { x: left + wide + 8, y: middle + 4, class: "tick" }, lane.note));
      top += size;
    }
    return svg;
  }

  return { strip, lanes };
})();

