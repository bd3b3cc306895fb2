// Zoom and hover for the figures that bring their data. All else on the page
// works without this script.
(() => {
  "use strict";
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const bytes = (v) => {
    const units = ["B", "KiB", "MiB", "GiB"];
    let i = 0;
    while (v >= 1024 && i < units.length - 1) { v /= 1024; i++; }
    return Number(v.toPrecision(4)) + " " + units[i];
  };
  const percent = (y) => Number((100 * (1 - Math.pow(10, -y))).toPrecision(6)) + " %";
  const digits = (v) => v == null ? "–" : String(Number(v.toPrecision(4)));

  // plot builds the chart of a figure's data in el.
  const plot = (el, data) => {
    const tail = data.kind === "cdf";
    const axis = { stroke: css("--ink"), grid: { stroke: css("--grid"), width: 1 }, ticks: { stroke: css("--muted"), width: 1 } };
    const series = [{ label: data.xlabel, value: (u, v) => v == null ? "–" : tail ? digits(v) + " µs" : bytes(v) }];
    const bands = [];
    const tables = data.series.map((s) => tail ? [s.x, s.y] : [s.x, s.y, s.p99]);
    for (const s of data.series) {
      const show = tail ? (u, v) => v == null ? "–" : percent(v) : (u, v) => digits(v) + " µs";
      series.push({
        label: s.name + (tail ? "" : " p50"), stroke: s.color, width: 2, dash: s.dash, spanGaps: true, value: show,
        points: { show: !tail }, paths: tail ? uPlot.paths.stepped({ align: 1 }) : undefined,
      });
      if (!tail) {
        series.push({ label: s.name + " p99", stroke: s.color, width: 1, spanGaps: true, value: show, points: { show: false } });
        bands.push({ series: [series.length - 1, series.length - 2], fill: s.color + "38" });
      }
    }
    const opts = {
      width: Math.max(280, el.clientWidth), height: 340, series, bands,
      cursor: { drag: { x: true, y: !tail, uni: 20 } },
      scales: tail ? { x: { time: false } } : { x: { time: false, distr: 3, log: 2 }, y: { distr: 3, log: 10 } },
      axes: [
        { ...axis, label: data.xlabel, values: (u, vs) => vs.map((v) => v == null ? "" : tail ? digits(v) : bytes(v)) },
        { ...axis, label: data.ylabel, size: 70, values: (u, vs) => vs.map((v) => v == null ? "" : tail ? percent(v) : digits(v)),
          splits: tail ? () => [0, 0.30103, 1, 2, 3, 4, 5] : undefined },
      ],
    };
    return new uPlot(opts, uPlot.join(tables), el);
  };

  // zoom scales the x axis around its middle, on the axis' own scale.
  const zoom = (u, data, factor, shift) => {
    const log = data.kind !== "cdf";
    const warp = log ? Math.log : (v) => v, back = log ? Math.exp : (v) => v;
    const lo = warp(u.scales.x.min), hi = warp(u.scales.x.max), mid = (lo + hi) / 2 + shift * (hi - lo), half = (hi - lo) / 2 * factor;
    u.setScale("x", { min: back(mid - half), max: back(mid + half) });
  };

  const button = (text, act) => {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = text;
    b.addEventListener("click", act);
    return b;
  };

  const start = (figure) => {
    const data = JSON.parse(figure.querySelector("script.data").textContent);
    const still = figure.querySelector(".static");
    const live = document.createElement("div");
    live.className = "live";
    live.hidden = true;
    live.tabIndex = 0;
    live.setAttribute("role", "group");
    live.setAttribute("aria-label", "Chart to zoom and hover; plus and minus zoom, the arrows move, 0 shows all");
    let u = null;
    const all = () => u.setData(u.data, true);
    const moves = [
      button("Zoom in", () => zoom(u, data, 0.5, 0)),
      button("Zoom out", () => zoom(u, data, 2, 0)),
      button("Show all", all),
    ];
    const toggle = button("Zoom and hover", () => {
      const on = live.hidden;
      live.hidden = !on;
      still.hidden = on;
      toggle.setAttribute("aria-pressed", String(on));
      for (const b of moves) b.hidden = !on;
      if (on && !u) u = plot(live, data);
    });
    toggle.setAttribute("aria-pressed", "false");
    for (const b of moves) b.hidden = true;
    live.addEventListener("keydown", (e) => {
      const act = { "+": [0.5, 0], "-": [2, 0], ArrowLeft: [1, -0.1], ArrowRight: [1, 0.1] }[e.key];
      if (act) zoom(u, data, ...act);
      else if (e.key === "0") all();
      else return;
      e.preventDefault();
    });
    const tools = document.createElement("div");
    tools.className = "tools";
    tools.append(toggle, ...moves);
    still.before(tools);
    still.after(live);
    figure.chart = () => u;
    // A new width or scheme makes a new chart.
    const again = () => {
      if (!u) return;
      u.destroy();
      u = live.hidden ? null : plot(live, data);
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    let width = innerWidth;
    addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; again(); } });
  };
  for (const s of document.querySelectorAll("figure > script.data")) start(s.parentElement);
})();
