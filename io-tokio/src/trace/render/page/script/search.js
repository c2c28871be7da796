/* Search in ids and texts of lanes, bars, marks, steps and violations. Each text is looked at once, however often it is used. */

const search = { query: '', hits: [], at: NONE, steps: new Set() };

/** All words must be in a text, in any order and case. */
function matcher(query) {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== '');
  return (text) => {
    const low = text.toLowerCase();
    return words.every((word) => low.includes(word));
  };
}

function find(query) {
  search.query = query;
  search.hits = [];
  search.steps = new Set();
  search.at = NONE;
  if (query.trim() === '') return;
  const fits = matcher(query);
  const { texts, lists, bars, steps, lanes } = trace;
  const text = Uint8Array.from(texts, (it) => (fits(it) ? 1 : 0));
  const list = Uint8Array.from(lists, (it) => (it.some((i) => text[i] === 1) ? 1 : 0));
  const number = /^#?(\d+)$/.exec(query.trim())?.[1];
  const hits = [];
  for (const it of trace.violations) {
    if (fits(it.rule) || fits(it.story)) hits.push({ at: it.at, violation: it, order: 0 });
  }
  for (const lane of lanes) {
    if (!fits(lane.label) && !fits(lane.note)) continue;
    const bar = trace.rows.start[lane.firstRow];
    const has = lane.rows > 0 && bar < trace.rows.start[lane.firstRow + 1];
    hits.push({ at: has ? bars.begin[bar] : Math.max(0, lane.from), lane: lane.number, bar: has ? bar : NONE, order: 1 });
  }
  for (let i = 0; i < bars.count; i++) {
    if (text[bars.label[i]] === 1 || list[bars.detail[i]] === 1) hits.push({ at: bars.begin[i], bar: i, order: 2 });
  }
  for (let i = 0; i < steps.count; i++) {
    if (text[steps.event[i]] === 1 || list[steps.effects[i]] === 1 || (number !== undefined && String(steps.n[i]) === number)) {
      hits.push({ at: steps.at[i], step: i, order: number !== undefined && String(steps.n[i]) === number ? -1 : 3 });
      search.steps.add(i);
    }
  }
  for (const mark of trace.marks) {
    if (mark.step === NONE || search.steps.has(mark.step) || !fits(mark.label)) continue;
    hits.push({ at: mark.at, step: mark.step, lane: mark.lane, order: 4 });
  }
  // What is named by the query comes before what only mentions it.
  hits.sort((x, y) => Math.min(x.order, 2) - Math.min(y.order, 2) || x.at - y.at || x.order - y.order);
  search.hits = hits;
}

function goToHit(by) {
  const { hits } = search;
  if (hits.length === 0) return;
  search.at = search.at === NONE ? (by > 0 ? 0 : hits.length - 1) : (search.at + by + hits.length) % hits.length;
  const hit = hits[search.at];
  if (hit.violation) goToViolation(hit.violation);
  else if (hit.lane !== undefined && hit.step === undefined) goToLane(hit);
  else if (hit.step !== undefined) selectStep(hit.step, { bring: true, lane: hit.lane ?? NONE });
  else selectBar(hit.bar, { bring: true });
  sayHits();
}

/** A lane with all that is in it. */
function goToLane({ lane, bar }) {
  if (bar !== NONE) selectBar(bar);
  const { from, to } = trace.lanes[lane];
  if (from <= to) bringTime(from, to);
  scrollToLane(lane);
}

function sayHits() {
  const out = document.getElementById('hits');
  const { hits, at, query } = search;
  out.className = query.trim() !== '' && hits.length === 0 ? 'none' : '';
  out.textContent = query.trim() === '' ? '' : hits.length === 0 ? 'none' : at === NONE ? `${hits.length}` : `${at + 1}/${hits.length}`;
}

function useSearch() {
  const form = document.getElementById('search'), query = document.getElementById('query');
  let wait = 0;
  const look = () => {
    clearTimeout(wait);
    if (query.value === search.query) return false;
    find(query.value);
    table.draw();
    sayHits();
    return true;
  };
  query.addEventListener('input', () => {
    clearTimeout(wait);
    wait = setTimeout(look, 120);
  });
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    look();
    goToHit(1);
  });
  query.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && event.shiftKey) {
      event.preventDefault();
      look();
      goToHit(-1);
    } else if (event.key === 'Escape') {
      query.value = '';
      look();
      chart.focus();
    }
    event.stopPropagation();
  });
  document.getElementById('hit-before').addEventListener('click', () => {
    look();
    goToHit(-1);
  });
}

let lastViolation = NONE;

function goToViolation(it) {
  lastViolation = it.number - 1;
  if (it.step === NONE) bringTime(it.at, it.at);
  else selectStep(it.step, { bring: true, lane: laneOfStep(it.step) });
}

function nextViolation(by) {
  const { violations } = trace;
  if (violations.length > 0) goToViolation(violations[(lastViolation + by + violations.length) % violations.length]);
}
