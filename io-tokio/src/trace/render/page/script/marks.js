/* Draws what is over the bars: marks, arrows, violations, the selection. */

/** More arrows than that in sight hide what they lead to: then only those of what is selected are drawn. */
const MOST_ARROWS = 600;

function drawMarks(ctx, lane, y) {
  const { marks } = trace;
  let before = -Infinity, shapes = 0;
  for (let i = lane.firstMark; i < lane.firstMark + lane.marks; i++) {
    const mark = marks[i];
    if (mark.at < view.from || mark.at > view.to) continue;
    const x = xOf(mark.at);
    const { glyph: shape } = theme.marks[mark.kind];
    if (x - before < (shape === 'tick' ? 2 : 5) && shape !== 'cross') continue;
    before = x;
    glyph(ctx, mark.kind, x, markY(lane, mark.kind, y));
    shapes += 1;
  }
  return shapes;
}

function markY(lane, kind, y) {
  switch (theme.marks[kind].glyph) {
    case 'tick': return y + LANE_PAD + lane.thick * THICK + (lane.thin > 0 ? 2 : -3);
    case 'down': return y + LANE_PAD + 3;
    default: return y + LANE_PAD + (THICK - 2) / 2;
  }
}

function glyph(ctx, kind, x, y) {
  const look = theme.marks[kind];
  ctx.beginPath();
  switch (look.glyph) {
    case 'down': ctx.moveTo(x - 4.5, y - 4); ctx.lineTo(x + 4.5, y - 4); ctx.lineTo(x, y + 3.5); ctx.closePath(); break;
    case 'disc': ctx.arc(x, y, 4, 0, 2 * Math.PI); break;
    case 'square': ctx.rect(x - 3.5, y - 3.5, 7, 7); break;
    case 'diamond': ctx.moveTo(x, y - 5); ctx.lineTo(x + 5, y); ctx.lineTo(x, y + 5); ctx.lineTo(x - 5, y); ctx.closePath(); break;
    case 'tick': ctx.moveTo(x, y - 3); ctx.lineTo(x, y + 3); break;
    case 'cross': ctx.moveTo(x - 3.5, y - 3.5); ctx.lineTo(x + 3.5, y + 3.5); ctx.moveTo(x + 3.5, y - 3.5); ctx.lineTo(x - 3.5, y + 3.5); break;
  }
  // A rim in the colour of the ground keeps marks apart from bars and from each other.
  ctx.strokeStyle = theme.colours.ground;
  ctx.lineWidth = look.glyph === 'cross' ? 5 : look.glyph === 'tick' ? 3 : 2.5;
  ctx.stroke();
  if (look.glyph === 'cross' || look.glyph === 'tick') {
    ctx.strokeStyle = look.fill;
    ctx.lineWidth = look.glyph === 'cross' ? 2.4 : 1.5;
    ctx.stroke();
  } else {
    ctx.fillStyle = look.fill;
    ctx.fill();
  }
}

/** Where a point of a lane is; `null` if its lane is not laid out. */
function pointAt(lane, at) {
  const item = layout.items[layout.places.get(lane)];
  return item ? { x: xOf(at), y: AXIS_HEIGHT + item.y - view.scroll + LANE_PAD + (THICK - 2) / 2 } : null;
}

function isOfSelection(arrow) {
  return selection.lane !== NONE && (arrow.fromLane === selection.lane || arrow.toLane === selection.lane);
}

function drawArrows(ctx) {
  const inSight = [];
  for (const arrow of trace.arrows) {
    if (Math.max(arrow.from, arrow.to) < view.from || Math.min(arrow.from, arrow.to) > view.to) continue;
    const from = pointAt(arrow.fromLane, arrow.from), to = pointAt(arrow.toLane, arrow.to);
    if (!from || !to) continue;
    const own = isOfSelection(arrow);
    // One that comes from out of sight or goes there says little, and many of them hide the bars.
    const [high, low] = [Math.min(from.y, to.y), Math.max(from.y, to.y)];
    if (own ? low < AXIS_HEIGHT || high > view.height : high < AXIS_HEIGHT || low > view.height) continue;
    inSight.push({ arrow, from, to, own });
  }
  const all = inSight.length <= MOST_ARROWS;
  let shapes = 0;
  for (const own of [false, true]) {
    if (!own && !all) continue;
    for (const it of inSight) {
      if (it.own !== own) continue;
      drawArrow(ctx, it.from, it.to, theme.arrows[it.arrow.kind].stroke, own ? 1 : selection.lane === NONE ? 0.65 : 0.25, own ? 2 : 1.1);
      shapes += 1;
    }
  }
  return shapes;
}

function drawArrow(ctx, from, to, colour, alpha, width) {
  const down = to.y >= from.y ? 1 : -1;
  // An arrow ends beside what it leads to, not on top of it.
  const endX = to.x - 1, endY = to.y;
  const bend = Math.min(70, Math.max(14, Math.abs(endX - from.x) * 0.5));
  ctx.globalAlpha = alpha;
  ctx.strokeStyle = ctx.fillStyle = colour;
  ctx.lineWidth = width;
  ctx.beginPath();
  ctx.moveTo(from.x, from.y + 5 * down);
  ctx.bezierCurveTo(from.x, from.y + (5 + bend) * down, endX - bend, endY, endX - 4, endY);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(endX, endY);
  ctx.lineTo(endX - 6, endY - 3.2);
  ctx.lineTo(endX - 6, endY + 3.2);
  ctx.fill();
  ctx.globalAlpha = 1;
}

/** Violations that are closer together than their badges, in the order of time. */
function violationClusters() {
  const clusters = [];
  for (const it of trace.violations) {
    const x = xOf(it.at), last = clusters.at(-1);
    if (last && x - last.x < 20) last.all.push(it);
    else clusters.push({ x, all: [it] });
  }
  return clusters;
}

function drawViolations(ctx) {
  let before = -Infinity;
  ctx.strokeStyle = theme.colours.alarm;
  ctx.lineWidth = 1.5;
  for (const it of trace.violations) {
    const x = Math.round(xOf(it.at)) + 0.5;
    if (x < view.left || x > view.width || x - before < 2) continue;
    before = x;
    ctx.beginPath();
    ctx.moveTo(x, AXIS_HEIGHT);
    ctx.lineTo(x, view.height);
    ctx.stroke();
  }
  ctx.textAlign = 'center';
  ctx.font = BOLD_FONT;
  for (const { x, all } of violationClusters()) {
    if (x < view.left || x > view.width) continue;
    const text = all.length === 1 ? String(all[0].number) : `${all[0].number}–${all.at(-1).number}`;
    const half = Math.max(8.5, textWidth(ctx, text) / 2 + 5);
    ctx.fillStyle = theme.colours.alarm;
    ctx.beginPath();
    ctx.roundRect(x - half, AXIS_HEIGHT - 9.5, 2 * half, 17, 8.5);
    ctx.fill();
    ctx.fillStyle = theme.colours.ground;
    ctx.fillText(text, x, AXIS_HEIGHT - 0.5);
  }
  ctx.textAlign = 'left';
}

/** The place of a bar; `null` if its lane is not laid out. */
function barBox(i) {
  const row = trace.bars.row[i], lane = trace.lanes[trace.rows.lane[row]];
  const item = layout.items[layout.places.get(lane.number)];
  if (!item) return null;
  const r = row - lane.firstRow, thin = r >= lane.thick;
  const y = AXIS_HEIGHT + item.y - view.scroll + LANE_PAD + Math.min(r, lane.thick) * THICK + Math.max(0, r - lane.thick) * THIN;
  const x = xOf(trace.bars.begin[i]), right = xOf(trace.bars.end[i]);
  return { x, y, width: Math.max(2, right - x), height: (thin ? THIN : THICK) - 2 };
}

function drawSelection(ctx) {
  if (selection.step !== NONE) {
    const x = Math.round(xOf(trace.steps.at[selection.step])) + 0.5;
    ctx.strokeStyle = theme.colours.focus;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(x, AXIS_HEIGHT - 8);
    ctx.lineTo(x, view.height);
    ctx.stroke();
  }
  if (selection.bar === NONE) return;
  const box = barBox(selection.bar);
  if (!box) return;
  const left = Math.max(box.x, view.left - 10), right = Math.min(box.x + box.width, view.width + 10);
  if (right < left) return;
  ctx.beginPath();
  ctx.roundRect(left - 2.5, box.y - 2.5, right - left + 5, box.height + 5, 4);
  ctx.strokeStyle = theme.colours.ground;
  ctx.lineWidth = 4;
  ctx.stroke();
  ctx.strokeStyle = theme.colours.focus;
  ctx.lineWidth = 2;
  ctx.stroke();
}
