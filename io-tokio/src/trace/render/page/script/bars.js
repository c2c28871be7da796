/* Draws the bars of one lane. What is narrower than a pixel is drawn as a share of its pixel, so the work depends on pixels and not on bars. */

const LABEL_FONT = '11px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, Arial, "Liberation Sans", sans-serif';
const MONO_FONT = '11px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';
const BOLD_FONT = '600 11.5px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, Arial, "Liberation Sans", sans-serif';
/** Pixels below which a bar is part of its pixel. */
const NARROW = 1.5;
/** Half the width of a mark with its rim, in pixels. */
const MARK_ROOM = 6;
/** Text widths are kept for so many texts. */
const MOST_WIDTHS = 20_000;
const widths = new Map();

/** Draws a lane with its top at `y`; returns the number of shapes. */
function drawBars(ctx, lane, y) {
  let top = y + LANE_PAD, shapes = 0;
  for (let r = lane.firstRow; r < lane.firstRow + lane.rows; r++) {
    const thin = trace.rows.thin[r];
    // Marks are over the bars of the first row.
    const over = r === lane.firstRow ? marksOver(lane) : [];
    shapes += drawRow(ctx, r, top, (thin ? THIN : THICK) - 2, thin, over);
    top += thin ? THIN : THICK;
  }
  return shapes;
}

/** Where marks are that cover letters, from left to right. */
function marksOver(lane) {
  const places = [];
  for (let i = lane.firstMark; i < lane.firstMark + lane.marks; i++) {
    const { kind, at } = trace.marks[i], { glyph: shape } = theme.marks[kind];
    if (shape !== 'tick' && shape !== 'down' && at >= view.from && at <= view.to) places.push(xOf(at));
  }
  return places.sort((a, b) => a - b);
}

function drawRow(ctx, row, top, height, thin, over) {
  const { bars, rows } = trace;
  const first = rows.start[row], end = rows.start[row + 1];
  const ms = view.perPixel;
  // Ends are in order too, as bars of a row do not overlap.
  let i = lowerBound(bars.end, view.from - ms, first, end), shapes = 0;
  while (i < end && bars.begin[i] <= view.to) {
    const x = xOf(bars.begin[i]), width = (bars.end[i] - bars.begin[i]) / ms;
    if (width >= NARROW) {
      drawBar(ctx, i, x, width, top, height, thin, over);
      i += 1;
    } else {
      // Pixels are counted from the beginning of the trace: so moving does not change what is in one.
      const pixel = Math.floor(bars.begin[i] / ms);
      const next = Math.max(i + 1, lowerBound(bars.begin, (pixel + 1) * ms, i + 1, end));
      let last = next - 1;
      // A wide bar that begins in this pixel is drawn for itself.
      if (last > i && (bars.end[last] - bars.begin[last]) / ms >= NARROW) last -= 1;
      const share = (bars.busy[last + 1] - bars.busy[i]) / ms;
      ctx.globalAlpha = Math.min(1, 0.45 + share * 0.55);
      ctx.fillStyle = theme.bars[bars.kind[i]].fill;
      ctx.fillRect(Math.round(xOf(pixel * ms)), top, 1.5, height);
      ctx.globalAlpha = 1;
      i = last + 1;
    }
    shapes += 1;
  }
  return shapes;
}

function drawBar(ctx, i, x, width, top, height, thin, over) {
  const { bars } = trace;
  const look = theme.bars[bars.kind[i]];
  const left = Math.max(x, view.left - 4), right = Math.min(x + width, view.width + 4);
  if (right <= left) return;
  const wide = right - left;
  ctx.fillStyle = look.fill;
  ctx.beginPath();
  if (wide > 5 && !thin) ctx.roundRect(left, top, wide, height, 3);
  else ctx.rect(left, top, wide, height);
  ctx.fill();
  if (look.hatched && wide > 3) {
    ctx.fillStyle = theme.hatch;
    ctx.fill();
  }
  const flags = bars.flags[i];
  if (flags & FAILED && right < view.width + 4) {
    const cap = Math.min(4, wide);
    ctx.fillStyle = theme.colours.failed;
    ctx.fillRect(right - cap, top, cap, height);
  }
  if (flags & OPEN_BEGIN && x >= view.left - 4) ragged(ctx, x, top, height);
  if (flags & OPEN_END && x + width <= view.width + 4) ragged(ctx, x + width, top, height);
  if (!thin && wide > 26) label(ctx, bars.label[i], left, wide - (flags & FAILED ? 4 : 0), top, height, look.text, over);
}

function ragged(ctx, x, top, height) {
  ctx.strokeStyle = theme.colours.ground;
  ctx.lineWidth = 2;
  ctx.setLineDash([2, 2]);
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, top + height);
  ctx.stroke();
  ctx.setLineDash([]);
}

function label(ctx, text, left, wide, top, height, colour, over) {
  const from = Math.max(left, view.left) + 5, end = left + wide - 5;
  // No mark is to cover any of it or, if there is no such place, its beginning.
  const whole = textWidth(ctx, trace.texts[text]);
  let x = clearOf(over, from, whole);
  if (x + whole > end) x = clearOf(over, from, 6);
  const shown = fitted(ctx, trace.texts[text], end - x);
  if (shown === '') return;
  ctx.fillStyle = colour;
  ctx.fillText(shown, x, top + height / 2 + 0.5);
}

/** The first place from `x` on where so many pixels are clear of marks. */
function clearOf(over, x, long) {
  for (let k = lowerBound(over, x - MARK_ROOM); k < over.length && over[k] < x + long + MARK_ROOM; k++) x = over[k] + MARK_ROOM + 1;
  return x;
}

/** As much of a text as goes into so many pixels; nothing if that is not worth it. */
function fitted(ctx, text, room) {
  const whole = textWidth(ctx, text);
  if (whole <= room) return text;
  const letters = Math.floor((room / whole) * text.length) - 1;
  return letters < 2 ? '' : `${text.slice(0, letters)}…`;
}

function textWidth(ctx, text) {
  const key = ctx.font + text;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > MOST_WIDTHS) widths.clear();
    width = ctx.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}
