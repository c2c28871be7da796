/* Keys. What they do is in one table, from which the help is made too. */

const KEYS = [
  [['ArrowLeft', 'ArrowRight'], '← →', 'the bar before, the next bar of the lane', (key) => stepBar(key === 'ArrowLeft' ? -1 : 1)],
  [['ArrowUp', 'ArrowDown'], '↑ ↓', 'the lane above, the lane below', (key) => stepLane(key === 'ArrowUp' ? -1 : 1)],
  [['a', 'd'], 'A D', 'earlier, later', (key) => pan((view.width - view.left) * (key === 'a' ? -0.2 : 0.2))],
  [['w', '+', '='], 'W +', 'zoom in', () => zoom(1 / 1.6, zoomCentre(), true)],
  [['s', '-'], 'S −', 'zoom out', () => zoom(1.6, zoomCentre(), true)],
  [['PageUp', 'PageDown'], 'PgUp PgDn', 'lanes above, lanes below', (key) => { stage.scrollTop += (key === 'PageUp' ? -0.8 : 0.8) * view.height; }],
  [['0', 'Home'], '0', 'show everything', () => showAll()],
  [['f'], 'F', 'zoom to what is selected', () => zoomToSelection()],
  [['v', 'V'], 'V', 'the next violation; with Shift the one before', (key) => nextViolation(key === 'v' ? 1 : -1)],
  [['/'], '/', 'search', () => document.getElementById('query').select()],
  [['n', 'N'], 'N', 'the next hit; with Shift the one before', (key) => goToHit(key === 'n' ? 1 : -1)],
  [['l'], 'L', 'only lanes in which something happens in this time', () => toggleLanes()],
  [['t'], 'T', 'light or dark', () => changeTheme()],
  [['Escape'], 'Esc', 'select nothing', () => selectNothing()],
  [['?'], '?', 'this help', () => document.getElementById('help').showModal()],
];
const MOUSE = [
  ['drag', 'move in time and over lanes'],
  ['Ctrl + wheel, pinch', 'zoom around the pointer; over the time axis also without Ctrl'],
  ['wheel, Shift + wheel', 'move over lanes, move in time'],
  ['drag on the time axis', 'zoom to the part that is marked'],
  ['click', 'select; on a group, fold it'],
  ['double click', 'zoom to a bar; on the time axis, show everything'],
];

function useKeys() {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById('help').open) return;
    const on = event.target;
    const isField = on.matches('input, [role="tab"], [role="separator"]');
    if (isField && event.key !== '/') return;
    if (on.matches('button') && (event.key === 'Enter' || event.key === ' ')) return;
    const found = KEYS.find(([keys]) => keys.includes(event.key));
    if (!found) return;
    event.preventDefault();
    found[3](event.key);
  });
  const help = document.getElementById('help');
  const lines = (rows) => element('table', {}, element('tbody', {}, ...rows.map(([keys, what]) => element('tr', {}, element('td', {}, ...keys.split(' ').flatMap((key) => [element('kbd', {}, key), ' '])), element('td', {}, what)))));
  help.append(
    element('h2', {}, 'Keys'), lines(KEYS.map(([, keys, what]) => [keys, what])),
    element('h2', {}, 'Mouse and fingers'), element('table', {}, element('tbody', {}, ...MOUSE.map(([does, what]) => element('tr', {}, element('td', {}, does), element('td', {}, what))))),
    element('p', {}, element('button', { type: 'button', onclick: () => help.close() }, 'Close')),
  );
  help.addEventListener('click', (event) => {
    if (event.target === help) help.close();
  });
  document.getElementById('help-open').addEventListener('click', () => help.showModal());
}

const zoomCentre = () => (pointer && pointer.x > view.left ? pointer.x : view.left + (view.width - view.left) / 2);

/** The bar before or after the selected one, in its row or, with none there, in the lane. */
function stepBar(by) {
  if (selection.bar === NONE) {
    const lane = selection.lane !== NONE ? selection.lane : firstLaneInSight();
    return lane === NONE ? undefined : selectIn(lane, (view.from + view.to) / 2);
  }
  const row = trace.bars.row[selection.bar], next = selection.bar + by;
  if (next >= trace.rows.start[row] && next < trace.rows.start[row + 1]) selectBar(next, { bring: true });
}

function stepLane(by) {
  const lanes = layout.items.filter((item) => item.lane !== undefined).map((item) => item.lane);
  if (lanes.length === 0) return;
  const at = lanes.indexOf(selection.lane);
  const next = at === -1 ? lanes.indexOf(firstLaneInSight()) : at + by;
  const lane = lanes[Math.min(lanes.length - 1, Math.max(0, next))];
  const { begin, end } = trace.bars;
  const time = selection.bar !== NONE ? Math.min(Math.max((begin[selection.bar] + end[selection.bar]) / 2, view.from), view.to) : (view.from + view.to) / 2;
  selectIn(lane, time);
}

function selectIn(lane, time) {
  const bar = nearestBar(trace.lanes[lane].firstRow, time);
  if (bar !== NONE) return selectBar(bar, { bring: true });
  Object.assign(selection, { bar: NONE, step: NONE, lane });
  scrollToLane(lane);
  selected(`${trace.lanes[lane].label}, no bars`);
}

function firstLaneInSight() {
  return itemsInSight().find(({ item }) => item.lane !== undefined)?.item.lane ?? NONE;
}

function zoomToSelection() {
  if (selection.bar !== NONE) zoomToBar(selection.bar);
  else if (selection.step !== NONE) glide(trace.steps.at[selection.step] - SECOND, trace.steps.at[selection.step] + SECOND);
}
