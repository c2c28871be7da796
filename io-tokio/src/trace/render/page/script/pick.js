/* What is under a point of the chart, and what is selected. */

/** Pixels around a bar that still belong to it. */
const REACH = 3;

/** `{ group }`, `{ lane, bar?, mark?, violation? }` or `null`. */
function pick(x, y) {
  if (y > AXIS_HEIGHT - 10 && y < AXIS_HEIGHT + 8 && x > view.left) {
    const near = violationClusters().find((it) => Math.abs(it.x - x) <= 10);
    if (near) return { violation: near.all[0], violations: near.all };
  }
  if (y < AXIS_HEIGHT) return null;
  const head = layout.heads.find((item) => item.drawnAt <= y && y < item.drawnAt + GROUP_HEIGHT);
  if (head) return { group: head.group };
  const item = layout.items[itemAt(y - AXIS_HEIGHT + view.scroll)];
  if (!item || item.lane === undefined || y - AXIS_HEIGHT + view.scroll > item.y + item.height) return null;
  const lane = trace.lanes[item.lane];
  if (x < view.left) return { lane: item.lane };
  const top = AXIS_HEIGHT + item.y - view.scroll;
  const mark = pickMark(lane, x, y, top);
  if (mark) return { lane: item.lane, mark };
  const bar = pickBar(lane, x, y, top);
  if (bar !== NONE) return { lane: item.lane, bar };
  const broken = trace.violations.find((it) => Math.abs(xOf(it.at) - x) <= 2);
  return broken ? { lane: item.lane, violation: broken } : { lane: item.lane };
}

function pickMark(lane, x, y, top) {
  let best = null, nearest = 6;
  for (let i = lane.firstMark; i < lane.firstMark + lane.marks; i++) {
    const mark = trace.marks[i];
    const off = Math.max(Math.abs(xOf(mark.at) - x), Math.abs(markY(lane, mark.kind, top) - y));
    if (off < nearest) [best, nearest] = [mark, off];
  }
  return best;
}

function pickBar(lane, x, y, top) {
  let rowTop = top + LANE_PAD, best = NONE, nearest = REACH + 0.01;
  for (let r = lane.firstRow; r < lane.firstRow + lane.rows; r++) {
    const height = trace.rows.thin[r] ? THIN : THICK;
    const off = y < rowTop ? rowTop - y : y > rowTop + height - 1 ? y - rowTop - height + 1 : 0;
    rowTop += height;
    if (off > REACH) continue;
    const bar = nearestBar(r, timeAt(x));
    if (bar === NONE) continue;
    const left = xOf(trace.bars.begin[bar]), right = xOf(trace.bars.end[bar]);
    const side = x < left ? left - x : x > right ? x - right : 0;
    // The right row counts more than the right pixel in it.
    if (side <= REACH && off + side / 10 < nearest) [best, nearest] = [bar, off + side / 10];
  }
  return best;
}

/** The bar of a row that is nearest to a time. */
function nearestBar(row, at) {
  const { bars, rows } = trace;
  const first = rows.start[row], end = rows.start[row + 1];
  if (first === end) return NONE;
  const i = lowerBound(bars.end, at, first, end);
  const off = (k) => (k < first || k >= end ? Infinity : Math.max(0, bars.begin[k] - at, at - bars.end[k]));
  return off(i) <= off(i - 1) ? i : i - 1;
}

const laneOfBar = (bar) => trace.rows.lane[trace.bars.row[bar]];

function selectBar(bar, { bring = false } = {}) {
  Object.assign(selection, { bar, step: NONE, lane: laneOfBar(bar) });
  if (bring) {
    bringTime(trace.bars.begin[bar], trace.bars.end[bar]);
    scrollToLane(selection.lane);
  }
  if (trace.bars.first[bar] !== NONE) table.reveal(trace.bars.first[bar]);
  selected(describeBar(bar).join(', '));
}

function selectStep(step, { bring = false, lane = NONE } = {}) {
  Object.assign(selection, { bar: NONE, step, lane });
  if (bring) {
    bringTime(trace.steps.at[step], trace.steps.at[step]);
    if (lane !== NONE) scrollToLane(lane);
  }
  table.reveal(step);
  selected(`Step ${trace.steps.n[step]}: ${trace.texts[trace.steps.event[step]]}`);
}

/** The lane in which a step begins or ends something: that of a task, if there is one. */
function laneOfStep(step) {
  const { bars } = trace;
  let lane = NONE;
  for (let i = 0; i < bars.count; i++) {
    if (bars.first[i] === step || bars.last[i] === step) lane = Math.max(lane, laneOfBar(i));
  }
  return lane;
}

function selectNothing() {
  Object.assign(selection, { bar: NONE, step: NONE, lane: NONE });
  selected('Nothing is selected');
}

/** Shows everywhere what is selected now. */
function selected(words) {
  document.getElementById('said').textContent = words;
  const hash = selection.step !== NONE ? `#step=${selection.step}` : selection.bar !== NONE ? `#bar=${selection.bar}` : '#';
  try {
    history.replaceState(null, '', hash);
  } catch { /* A page without an address of its own has none to change. */ }
  showDetails();
  table.draw();
  redraw();
}

/** Goes to what the address names. */
function selectByAddress() {
  const [, what, number] = /^#(step|bar)=(\d{1,9})$/.exec(location.hash) ?? [];
  if (what === 'step' && Number(number) < trace.steps.count) selectStep(Number(number), { bring: true });
  if (what === 'bar' && Number(number) < trace.bars.count) selectBar(Number(number), { bring: true });
}
