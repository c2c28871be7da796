/* Puts the page together. */

function changeTheme() {
  switchTheme(trace.looks);
  themed();
}

/** Draws anew what has colours of its own. */
function themed() {
  drawLegend();
  showDetails();
  redraw();
}

function toggleLanes() {
  layout.onlyInView = !layout.onlyInView;
  document.getElementById('only-lanes').setAttribute('aria-pressed', String(layout.onlyInView));
  keepPlace(() => layOut(trace, view.from, view.to));
  redraw();
}

function useTabs() {
  const tabs = [...document.querySelectorAll('[role="tab"]')];
  const open = (tab) => {
    for (const it of tabs) {
      const on = it === tab;
      it.setAttribute('aria-selected', String(on));
      it.tabIndex = on ? 0 : -1;
      document.getElementById(it.getAttribute('aria-controls')).hidden = !on;
    }
    // What was selected meanwhile could not be brought into sight.
    const step = selection.bar === NONE ? selection.step : trace.bars.first[selection.bar];
    if (step === NONE) table.draw();
    else table.reveal(step);
  };
  for (const tab of tabs) {
    tab.addEventListener('click', () => open(tab));
    tab.addEventListener('keydown', (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
      open(next);
      next.focus();
    });
  }
  return open;
}

function useSplitter() {
  const splitter = document.getElementById('splitter'), dock = document.getElementById('dock');
  const set = (height) => {
    const most = innerHeight - 260;
    dock.style.height = `${Math.round(Math.min(Math.max(height, 90), Math.max(90, most)))}px`;
    say();
    table.draw();
  };
  const say = () => splitter.setAttribute('aria-valuenow', String(Math.round((dock.offsetHeight / innerHeight) * 100)));
  say();
  splitter.addEventListener('pointerdown', (event) => splitter.setPointerCapture(event.pointerId));
  splitter.addEventListener('pointermove', (event) => {
    if (splitter.hasPointerCapture(event.pointerId)) set(innerHeight - event.clientY - 4);
  });
  splitter.addEventListener('keydown', (event) => {
    const by = { ArrowUp: 24, ArrowDown: -24 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    set(dock.offsetHeight + by);
  });
}

function fillLists(open) {
  const { violations, steps } = trace;
  document.getElementById('count-steps').textContent = steps.count.toLocaleString('en');
  document.getElementById('count-violations').textContent = String(violations.length);
  const panel = document.getElementById('panel-violations');
  if (violations.length === 0) {
    const judged = trace.judged === steps.count ? `all ${steps.count}` : `the ${trace.judged} of ${steps.count}`;
    const text = trace.judged === 0
      ? 'No step could be held to the rules: the trace does not tell what they need to know.'
      : `No rule is broken in ${judged} steps that could be held to the rules.`;
    panel.append(element('p', { className: 'faint' }, text));
  } else {
    document.getElementById('tab-violations').classList.add('alarm');
    panel.append(element('ol', {}, ...violations.map((it) => element('li', {},
      element('span', { className: 'number' }, String(it.number)),
      element('div', {},
        element('span', { className: 'rule alarm' }, it.rule), ' ',
        link(it.step === NONE ? `at ${exactTime(it.at)}` : `at step ${stepName(it.step)}, ${exactTime(it.at)}`, () => goToViolation(it)),
        element('div', {}, it.story), element('div', { className: 'faint' }, it.says)),
    ))));
    const broken = document.getElementById('broken');
    broken.textContent = violations.length === 1 ? '1 violation' : `${violations.length} violations`;
    broken.hidden = false;
    broken.addEventListener('click', () => {
      open(document.getElementById('tab-violations'));
      nextViolation(1);
    });
  }
  const wall = wallText(trace, 0);
  const facts = [...trace.facts, ...(wall === '' ? [] : [['begins', wall]])];
  document.getElementById('panel-about').append(element('dl', {}, ...facts.flatMap(([name, value]) => [element('dt', {}, name), element('dd', {}, value)])));
}

/** What colours and shapes mean, of those that are in the trace. */
function drawLegend() {
  const kinds = new Set(trace.bars.kind), marks = new Set(trace.marks.map((mark) => mark.kind)), arrows = new Set(trace.arrows.map((arrow) => arrow.kind));
  const entries = [];
  const entry = (name, draw) => {
    const canvas = element('canvas');
    fitCanvas(canvas, 30, 16);
    const ctx = canvas.getContext('2d');
    ctx.scale(devicePixelRatio || 1, devicePixelRatio || 1);
    draw(ctx);
    entries.push(element('li', {}, canvas, name));
  };
  theme.bars.forEach((look, k) => {
    if (!kinds.has(k)) return;
    entry(look.name, (ctx) => {
      ctx.fillStyle = look.fill;
      ctx.fillRect(2, look.thin ? 6 : 2, 26, look.thin ? 4 : 12);
      if (look.hatched) {
        ctx.fillStyle = theme.hatch;
        ctx.fillRect(2, 2, 26, 12);
      }
    });
  });
  theme.marks.forEach((look, k) => { if (marks.has(k)) entry(look.name, (ctx) => glyph(ctx, k, 15, 8)); });
  theme.arrows.forEach((look, k) => { if (arrows.has(k)) entry(look.name, (ctx) => drawArrow(ctx, { x: 5, y: 0 }, { x: 26, y: 11 }, look.stroke, 1, 1.3)); });
  entry('ended badly', (ctx) => { ctx.fillStyle = theme.colours.failed; ctx.fillRect(20, 2, 4, 12); });
  entry('violation', (ctx) => { ctx.fillStyle = theme.colours.alarm; ctx.beginPath(); ctx.arc(15, 8, 6, 0, 2 * Math.PI); ctx.fill(); });
  if (trace.bars.flags.some((flags) => flags & (OPEN_BEGIN | OPEN_END))) {
    entry(`beginning or end is not known${trace.reachesOut ? ', or outside' : ''}`, (ctx) => {
      ctx.fillStyle = theme.colours.faint;
      ctx.fillRect(6, 2, 18, 12);
      ragged(ctx, 24, 2, 12);
    });
  }
  if (trace.unknown.length > 0) entry('nothing is known', (ctx) => { ctx.fillStyle = theme.void; ctx.fillRect(2, 2, 26, 12); });
  document.getElementById('panel-legend').replaceChildren(element('ul', {}, ...entries));
}

function start() {
  trace = readTrace(document.getElementById('data').textContent);
  // The text is as large as the trace, and has served.
  document.getElementById('data').remove();
  stage = document.getElementById('stage');
  chart = document.getElementById('chart');
  pen = chart.getContext('2d', { alpha: false });
  minimap = document.getElementById('minimap');
  mapPen = minimap.getContext('2d', { alpha: false });
  setTheme(trace.looks, isDark());
  [view.from, view.to] = [0, longest()];
  layOut(trace, view.from, view.to);
  table.start();
  usePointer();
  useMinimap();
  useKeys();
  useSearch();
  useSplitter();
  fillLists(useTabs());
  document.getElementById('only-lanes').addEventListener('click', toggleLanes);
  document.getElementById('zoom-in').addEventListener('click', () => zoom(1 / 1.6, undefined, true));
  document.getElementById('zoom-out').addEventListener('click', () => zoom(1.6, undefined, true));
  document.getElementById('fit').addEventListener('click', showAll);
  document.getElementById('theme').addEventListener('click', changeTheme);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    setTheme(trace.looks, isDark());
    themed();
  });
  new ResizeObserver(() => {
    resize();
    table.draw();
  }).observe(stage);
  resize();
  show(trace.begin - longest(), trace.begin + 2 * longest());
  themed();
  selectByAddress();
  // For whoever wants to look deeper with the console of the browser.
  globalThis.longshore = Object.freeze({ trace, view, selection, search, layout, drawn, show, selectStep, selectBar });
}

start();
