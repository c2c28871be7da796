/* The whole trace in a strip: how many tasks are here and how many of them run, how dense the steps are, and which part is to be seen. */

const MAP_HEIGHT = 46;
let minimap, mapPen, mapTasks = null, mapPicture = null;

/** Kinds of bars that are phases of a task come first, and `running` is one of them. */
function fitMinimap() {
  if (fitCanvas(minimap, minimap.parentElement.clientWidth, MAP_HEIGHT)) mapPicture = null;
}

const mapX = (at) => view.left + ((at - trace.begin) / (trace.end - trace.begin)) * (mapWidth() - view.left - 12);
const mapTime = (x) => trace.begin + ((x - view.left) / (mapWidth() - view.left - 12)) * (trace.end - trace.begin);
const mapWidth = () => minimap.clientWidth || view.width;

/** For each column of pixels: tasks that wait or are prepared, that run, that are reported; and steps. */
function mapColumns(columns) {
  const phases = trace.looks.bars.findIndex((look) => look.key === 'held');
  const running = trace.looks.bars.findIndex((look) => look.key === 'running');
  const layers = [running, NONE].map(() => new Float64Array(columns + 1));
  const { bars, steps } = trace;
  const scale = columns / (trace.end - trace.begin);
  for (let i = 0; i < bars.count; i++) {
    const kind = bars.kind[i];
    if (kind >= phases) continue;
    const layer = layers[kind === running ? 0 : 1];
    const from = (bars.begin[i] - trace.begin) * scale, to = Math.min(columns, (bars.end[i] - trace.begin) * scale);
    const a = Math.min(columns - 1, Math.floor(from)), b = Math.min(columns - 1, Math.floor(to));
    // Differences: one column for each end, whatever the length.
    if (a === b) {
      layer[a] += to - from;
      layer[a + 1] -= to - from;
    } else {
      layer[a] += a + 1 - from;
      layer[a + 1] += from - a;
      layer[b] -= b + 1 - to;
      layer[b + 1] -= to - b;
    }
  }
  for (const layer of layers) for (let c = 1; c <= columns; c++) layer[c] += layer[c - 1];
  const density = new Float64Array(columns);
  for (let i = 0; i < steps.count; i++) density[Math.min(columns - 1, Math.max(0, Math.floor((steps.at[i] - trace.begin) * scale)))] += 1;
  return { running: layers[0], other: layers[1], density };
}

function paintMinimap() {
  const width = mapWidth(), ratio = devicePixelRatio || 1;
  const columns = Math.max(1, Math.floor(width - view.left - 12));
  mapPicture = document.createElement('canvas');
  mapPicture.width = minimap.width;
  mapPicture.height = minimap.height;
  mapPicture.name = `${view.left} ${theme.dark}`;
  const ctx = mapPicture.getContext('2d');
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = theme.colours.ground;
  ctx.fillRect(0, 0, width, MAP_HEIGHT);
  const { running, other, density } = mapColumns(columns);
  let most = 0, dense = 1;
  for (let c = 0; c < columns; c++) {
    most = Math.max(most, running[c] + other[c]);
    dense = Math.max(dense, density[c]);
  }
  const base = MAP_HEIGHT - 5, room = MAP_HEIGHT - 12;
  const kind = (key) => theme.bars.find((look) => look.key === key).fill;
  if (most > 0) {
    for (const [fill, height] of [[kind('preparing'), (c) => running[c] + other[c]], [kind('running'), (c) => running[c]]]) {
      ctx.fillStyle = fill;
      for (let c = 0; c < columns; c++) {
        const h = (height(c) / most) * room;
        if (h > 0.2) ctx.fillRect(view.left + c, base - h, 1, h);
      }
    }
  }
  ctx.fillStyle = theme.colours.faint;
  for (let c = 0; c < columns; c++) {
    if (density[c] === 0) continue;
    ctx.globalAlpha = 0.25 + (0.75 * Math.log1p(density[c])) / Math.log1p(dense);
    ctx.fillRect(view.left + c, base + 1, 1, 3);
  }
  ctx.globalAlpha = 1;
  ctx.fillStyle = theme.void;
  for (const hole of trace.unknown) ctx.fillRect(mapX(hole.begin), 0, Math.max(2, mapX(hole.end) - mapX(hole.begin)), MAP_HEIGHT);
  ctx.fillStyle = theme.colours.alarm;
  for (const it of trace.violations) {
    ctx.fillRect(mapX(it.at) - 0.75, 0, 1.5, MAP_HEIGHT);
    ctx.beginPath();
    ctx.arc(mapX(it.at), 4, 3, 0, 2 * Math.PI);
    ctx.fill();
  }
  ctx.font = LABEL_FONT;
  ctx.textBaseline = 'middle';
  ctx.fillStyle = theme.colours.faint;
  mapTasks = most;
  const text = most > 0 ? `tasks, at most ${Math.ceil(most - 0.001)}` : 'steps';
  ctx.fillText(text, 14, MAP_HEIGHT / 2 - 7);
  ctx.fillText(`${durationText(trace.end - trace.begin)} in all`, 14, MAP_HEIGHT / 2 + 8);
}

function drawMinimap() {
  if (!mapPicture || mapPicture.name !== `${view.left} ${theme.dark}`) paintMinimap();
  const ctx = mapPen, ratio = devicePixelRatio || 1, width = mapWidth();
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.drawImage(mapPicture, 0, 0);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  const a = Math.max(view.left, mapX(view.from)), b = Math.min(width - 1, Math.max(mapX(view.to), a + 2));
  ctx.fillStyle = theme.colours.ground;
  ctx.globalAlpha = 0.62;
  ctx.fillRect(view.left, 0, a - view.left, MAP_HEIGHT);
  ctx.fillRect(b, 0, width - b, MAP_HEIGHT);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = theme.colours.focus;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(a + 0.5, 1, Math.max(1, b - a - 1), MAP_HEIGHT - 2);
}

/** The strip is a handle: pressing moves the part that is to be seen, and beside it brings that part there. */
function useMinimap() {
  let grip = null;
  minimap.addEventListener('pointerdown', (event) => {
    const at = mapTime(event.offsetX), span = view.to - view.from;
    const a = mapX(view.from), b = mapX(view.to);
    minimap.setPointerCapture(event.pointerId);
    if (event.offsetX < a - 5 || event.offsetX > b + 5) show(at - span / 2, at + span / 2);
    const edge = b - a > 24 && (Math.abs(event.offsetX - a) < 6 ? 'from' : Math.abs(event.offsetX - b) < 6 ? 'to' : null);
    grip = { at, from: view.from, to: view.to, edge };
  });
  minimap.addEventListener('pointermove', (event) => {
    if (!grip) {
      const near = Math.min(Math.abs(event.offsetX - mapX(view.from)), Math.abs(event.offsetX - mapX(view.to)));
      minimap.style.cursor = near < 6 ? 'ew-resize' : 'grab';
      return;
    }
    const by = mapTime(event.offsetX) - grip.at;
    if (grip.edge === 'from') show(Math.min(grip.from + by, grip.to - SHORTEST), grip.to);
    else if (grip.edge === 'to') show(grip.from, Math.max(grip.to + by, grip.from + SHORTEST));
    else show(grip.from + by, grip.to + by);
  });
  const drop = () => { grip = null; };
  minimap.addEventListener('pointerup', drop);
  minimap.addEventListener('pointercancel', drop);
  minimap.addEventListener('wheel', (event) => {
    event.preventDefault();
    zoom(wheelFactor(event), xOf(mapTime(event.offsetX)));
  }, { passive: false });
}
