/* Draws the chart as a whole: ground, axis, unknown times, lanes, labels. */

const AXIS_ROOM = 110;
let chart, pen;
/** What the last drawing came to. */
const drawn = { frames: 0, shapes: 0, ms: 0 };

/** Where the pointer is in the chart, in pixels; `null` if it is elsewhere. */
let pointer = null;

function fitReach() {
  const reach = document.getElementById('reach');
  const height = Math.max(0, layout.height + AXIS_HEIGHT - view.height + 8);
  const wanted = `${height}px`;
  if (reach.style.height !== wanted) reach.style.height = wanted;
}

/** Gives a canvas as many dots as the screen has. Returns whether that changed anything. */
function fitCanvas(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width === w && canvas.height === h) return false;
  canvas.width = w;
  canvas.height = h;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  return true;
}

function resize() {
  view.width = stage.clientWidth;
  view.height = stage.clientHeight;
  view.left = Math.min(230, Math.round(view.width * 0.3));
  fitCanvas(chart, view.width, view.height);
  fitMinimap();
  redraw();
}

function drawAll() {
  const start = performance.now();
  if (layout.onlyInView) keepPlace(() => layOut(trace, view.from, view.to));
  fitReach();
  const ratio = devicePixelRatio || 1;
  const ctx = pen;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = theme.colours.ground;
  ctx.fillRect(0, 0, view.width, view.height);
  ctx.textBaseline = 'middle';
  const step = axisStep(view.to - view.from, Math.max(2, (view.width - view.left) / AXIS_ROOM));
  const seen = itemsInSight();
  drawBands(ctx, seen);
  drawAxisLines(ctx, step);
  let shapes = clipped(ctx, view.left, AXIS_HEIGHT, () => drawLanes(ctx, seen));
  drawLabels(ctx, seen);
  drawAxis(ctx, step);
  clipped(ctx, view.left, 0, () => {
    drawViolations(ctx);
    drawPointerTime(ctx);
  });
  drawMinimap();
  drawn.frames += 1;
  drawn.shapes = shapes;
  drawn.ms = performance.now() - start;
}

/** Lays out anew, and keeps what is at the top of the sight there. */
function keepPlace(change) {
  const top = layout.items[itemAt(view.scroll)];
  const offset = top ? view.scroll - top.y : 0;
  change();
  if (!top) return;
  const place = layout.items.find((item) => (top.lane === undefined ? item.group === top.group : item.lane >= top.lane));
  fitReach();
  if (place && view.scroll > 0 && Math.abs(place.y + offset - view.scroll) > 1) stage.scrollTop = place.y + offset;
}

function itemsInSight() {
  const seen = [];
  for (let i = itemAt(view.scroll); i < layout.items.length; i++) {
    const item = layout.items[i];
    const y = AXIS_HEIGHT + item.y - view.scroll;
    if (y > view.height) break;
    if (y + item.height > AXIS_HEIGHT) seen.push({ item, y });
  }
  return seen;
}

function clipped(ctx, x, y, draw) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(x, y, view.width - x, view.height - y);
  ctx.clip();
  const result = draw();
  ctx.restore();
  return result;
}

function drawBands(ctx, seen) {
  ctx.fillStyle = theme.colours.band;
  for (const { item, y } of seen) {
    if (item.lane !== undefined && item.odd) ctx.fillRect(0, y, view.width, item.height);
  }
}

function drawAxisLines(ctx, step) {
  ctx.strokeStyle = theme.colours.line;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = Math.round(xOf(at)) + 0.5;
    if (x < view.left) continue;
    ctx.moveTo(x, AXIS_HEIGHT);
    ctx.lineTo(x, view.height);
  }
  ctx.stroke();
}

function drawLanes(ctx, seen) {
  for (const hole of trace.unknown) {
    if (hole.end < view.from || hole.begin > view.to) continue;
    const x = xOf(hole.begin);
    ctx.fillStyle = theme.void;
    ctx.fillRect(x, AXIS_HEIGHT, Math.max(3, xOf(hole.end) - x), view.height);
  }
  for (const at of [trace.begin, trace.end]) {
    const x = Math.round(xOf(at)) + 0.5;
    ctx.strokeStyle = theme.colours.faint;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(x, AXIS_HEIGHT);
    ctx.lineTo(x, view.height);
    ctx.stroke();
    ctx.setLineDash([]);
  }
  let shapes = 0;
  ctx.font = LABEL_FONT;
  for (const { item, y } of seen) if (item.lane !== undefined) shapes += drawBars(ctx, trace.lanes[item.lane], y);
  shapes += drawArrows(ctx);
  for (const { item, y } of seen) if (item.lane !== undefined) shapes += drawMarks(ctx, trace.lanes[item.lane], y);
  drawSelection(ctx);
  return shapes;
}

function drawLabels(ctx, seen) {
  ctx.fillStyle = theme.colours.ground;
  ctx.fillRect(0, AXIS_HEIGHT, view.left, view.height);
  for (const { item, y } of seen) {
    if (item.lane === undefined) continue;
    const lane = trace.lanes[item.lane];
    if (item.odd) {
      ctx.fillStyle = theme.colours.band;
      ctx.fillRect(0, y, view.left, item.height);
    }
    if (item.lane === selection.lane) {
      ctx.fillStyle = theme.colours.focus;
      ctx.fillRect(0, y, 3, item.height);
    }
    const high = item.height >= 44 && lane.note !== '';
    const middle = y + LANE_PAD + (THICK - 2) / 2;
    ctx.font = MONO_FONT;
    ctx.fillStyle = theme.colours.ink;
    const room = view.left - 26;
    const name = fitted(ctx, lane.label, room);
    ctx.fillText(name, 14, middle);
    if (lane.note === '') continue;
    ctx.font = LABEL_FONT;
    ctx.fillStyle = theme.colours.faint;
    if (high) {
      ctx.fillText(fitted(ctx, lane.note, room), 14, middle + 15);
    } else {
      ctx.font = MONO_FONT;
      const used = textWidth(ctx, name);
      ctx.font = LABEL_FONT;
      ctx.fillText(fitted(ctx, lane.note, room - used - 8), 22 + used, middle);
    }
  }
  drawGroups(ctx, seen);
  ctx.strokeStyle = theme.colours.line;
  ctx.beginPath();
  ctx.moveTo(view.left + 0.5, 0);
  ctx.lineTo(view.left + 0.5, view.height);
  ctx.stroke();
}

/** Names of groups; that of the group at the top stays in sight. */
function drawGroups(ctx, seen) {
  for (const head of layout.heads) head.drawnAt = NaN;
  for (const head of layout.heads) {
    const end = AXIS_HEIGHT + head.end - view.scroll;
    if (end < AXIS_HEIGHT) continue;
    const y = Math.min(Math.max(AXIS_HEIGHT + head.y - view.scroll, AXIS_HEIGHT), Math.max(end - GROUP_HEIGHT, AXIS_HEIGHT + head.y - view.scroll));
    if (y > view.height) break;
    head.drawnAt = y;
    const group = trace.groups[head.group];
    ctx.fillStyle = theme.colours.ground;
    ctx.fillRect(0, y, view.width, GROUP_HEIGHT);
    ctx.strokeStyle = theme.colours.line;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(0, Math.round(y + GROUP_HEIGHT) - 0.5);
    ctx.lineTo(view.width, Math.round(y + GROUP_HEIGHT) - 0.5);
    ctx.stroke();
    ctx.fillStyle = theme.colours.faint;
    ctx.beginPath();
    const middle = y + GROUP_HEIGHT / 2;
    if (group.folded) { ctx.moveTo(8, middle - 4); ctx.lineTo(13, middle); ctx.lineTo(8, middle + 4); }
    else { ctx.moveTo(6, middle - 2.5); ctx.lineTo(14, middle - 2.5); ctx.lineTo(10, middle + 2.5); }
    ctx.fill();
    ctx.font = BOLD_FONT;
    ctx.fillStyle = theme.colours.ink;
    ctx.fillText(group.name, 20, middle);
    const used = textWidth(ctx, group.name);
    ctx.font = LABEL_FONT;
    ctx.fillStyle = theme.colours.faint;
    const count = head.shown === group.count ? String(group.count) : `${head.shown} of ${group.count}`;
    ctx.fillText(count, 28 + used, middle);
  }
}

function drawAxis(ctx, step) {
  ctx.fillStyle = theme.colours.ground;
  ctx.fillRect(0, 0, view.width, AXIS_HEIGHT);
  ctx.font = LABEL_FONT;
  ctx.fillStyle = theme.colours.faint;
  ctx.fillText(`${durationText(view.to - view.from)} in view`, 14, AXIS_HEIGHT / 2);
  ctx.textAlign = 'center';
  clipped(ctx, view.left, 0, () => {
    for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
      const text = timeText(at, step), half = textWidth(ctx, text) / 2;
      if (xOf(at) - half > view.left + 2 && xOf(at) + half < view.width) ctx.fillText(text, xOf(at), AXIS_HEIGHT / 2);
    }
  });
  ctx.textAlign = 'left';
  ctx.strokeStyle = theme.colours.line;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(0, AXIS_HEIGHT - 0.5);
  ctx.lineTo(view.width, AXIS_HEIGHT - 0.5);
  ctx.moveTo(view.left + 0.5, 0);
  ctx.lineTo(view.left + 0.5, AXIS_HEIGHT);
  ctx.stroke();
}

/** The time under the pointer, and the part that is being marked. */
function drawPointerTime(ctx) {
  if (marking) {
    const [a, b] = [xOf(marking.from), xOf(marking.to)];
    ctx.fillStyle = theme.colours.focus;
    ctx.globalAlpha = 0.18;
    ctx.fillRect(Math.min(a, b), 0, Math.abs(b - a), view.height);
    ctx.globalAlpha = 1;
  }
  if (!pointer || pointer.x < view.left) return;
  const x = Math.round(pointer.x) + 0.5;
  ctx.strokeStyle = theme.colours.faint;
  ctx.globalAlpha = 0.5;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(x, AXIS_HEIGHT);
  ctx.lineTo(x, view.height);
  ctx.stroke();
  ctx.globalAlpha = 1;
  const text = marking ? durationText(Math.abs(marking.to - marking.from)) : exactTime(timeAt(pointer.x));
  ctx.font = LABEL_FONT;
  const wide = textWidth(ctx, text) + 12;
  const left = Math.min(Math.max(x - wide / 2, view.left + 2), view.width - wide - 2);
  ctx.fillStyle = theme.colours.ink;
  ctx.beginPath();
  ctx.roundRect(left, 5, wide, AXIS_HEIGHT - 10, 4);
  ctx.fill();
  ctx.fillStyle = theme.colours.ground;
  ctx.fillText(text, left + 6, AXIS_HEIGHT / 2);
}
