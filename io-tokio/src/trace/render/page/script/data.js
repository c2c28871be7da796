/* Reads the data that the page carries into flat arrays. */

const BAR = 8, MARK = 4, ARROW = 6;
const FAILED = 1, OPEN_BEGIN = 2, OPEN_END = 4;
const NONE = -1;

function readTrace(source) {
  const raw = JSON.parse(source);
  const lanesOf = raw.groups.flatMap((group) => group.lanes);
  const count = (list) => lanesOf.reduce((sum, lane) => sum + list(lane), 0);
  const bars = emptyBars(count((lane) => lane.rows.reduce((sum, row) => sum + row.length, 0)) / BAR);
  const rows = { start: [], lane: [], thin: [] };
  const lanes = [];
  const groups = [];
  const marks = [];
  let b = 0;
  for (const group of raw.groups) {
    groups.push({ name: group.name, first: lanes.length, count: group.lanes.length, folded: false });
    for (const lane of group.lanes) {
      const number = lanes.length;
      const it = {
        number, group: groups.length - 1, label: raw.texts[lane.label], note: raw.texts[lane.note],
        thick: lane.thick, thin: lane.thin, firstRow: rows.start.length, rows: lane.rows.length,
        from: Infinity, to: -Infinity, firstMark: marks.length, marks: 0,
      };
      lane.rows.forEach((row, r) => {
        rows.start.push(b);
        rows.lane.push(number);
        rows.thin.push(r >= lane.thick);
        let at = 0;
        for (let i = 0; i < row.length; i += BAR, b++) {
          at += row[i + 2];
          bars.kind[b] = row[i];
          bars.label[b] = row[i + 1];
          bars.begin[b] = at;
          bars.end[b] = at + row[i + 3];
          bars.flags[b] = row[i + 4];
          bars.first[b] = row[i + 5] - 1;
          bars.last[b] = row[i + 6] - 1;
          bars.detail[b] = row[i + 7];
          bars.row[b] = rows.start.length - 1;
          bars.busy[b + 1] = bars.busy[b] + row[i + 3];
          it.from = Math.min(it.from, at);
          it.to = Math.max(it.to, bars.end[b]);
        }
      });
      const own = [];
      for (let i = 0; i < lane.marks.length; i += MARK) {
        own.push({ kind: lane.marks[i], label: raw.texts[lane.marks[i + 1]], at: lane.marks[i + 2], step: lane.marks[i + 3] - 1, lane: number });
        it.from = Math.min(it.from, lane.marks[i + 2]);
        it.to = Math.max(it.to, lane.marks[i + 2]);
      }
      own.sort((x, y) => x.at - y.at);
      for (const mark of own) marks.push(mark);
      it.marks = own.length;
      lanes.push(it);
    }
  }
  rows.start.push(b);
  const violations = raw.violations.map((it, i) => ({ ...it, step: it.step - 1, number: i + 1 }));
  return {
    title: raw.title, facts: raw.facts, start: raw.start, begin: raw.begin, end: Math.max(raw.end, raw.begin + 1), looks: raw.looks, texts: raw.texts, lists: raw.lists,
    groups, lanes, rows, bars, marks, judged: raw.judged, violations, arrows: readArrows(raw.arrows),
    reachesOut: raw.reachesOut,
    unknown: raw.unknown.map(([begin, end, why]) => ({ begin, end, why })),
    steps: readSteps(raw.steps), brokenSteps: new Set(violations.map((it) => it.step)),
  };
}

function emptyBars(n) {
  return {
    count: n, kind: new Uint8Array(n), label: new Uint32Array(n), begin: new Float64Array(n), end: new Float64Array(n), flags: new Uint8Array(n),
    first: new Int32Array(n), last: new Int32Array(n), detail: new Uint32Array(n), row: new Uint32Array(n), busy: new Float64Array(n + 1),
  };
}

function readArrows(flat) {
  const arrows = [];
  for (let i = 0; i < flat.length; i += ARROW) {
    arrows.push({ kind: flat[i], fromLane: flat[i + 1], from: flat[i + 2], toLane: flat[i + 3], to: flat[i + 4], step: flat[i + 5] - 1 });
  }
  return arrows;
}

function readSteps(raw) {
  const count = raw.times.length;
  const steps = { count, at: new Float64Array(count), n: new Float64Array(count), life: new Uint32Array(count), event: raw.events, effects: raw.effects };
  let at = 0, jump = 0, life = 0, n = -1;
  for (let i = 0; i < count; i++) {
    at += raw.times[i];
    n += 1;
    if (jump < raw.jumps.length && raw.jumps[jump][0] === i) [, life, n] = raw.jumps[jump++];
    steps.at[i] = at;
    steps.n[i] = n;
    steps.life[i] = life;
  }
  steps.lives = count > 0 ? life + 1 : 0;
  return steps;
}

/** The first position from `low` up to `high` at which `values` is not less than `limit`. */
function lowerBound(values, limit, low = 0, high = values.length) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
