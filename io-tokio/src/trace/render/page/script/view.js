/* Which part of the trace is to be seen, and how that changes. */

const AXIS_HEIGHT = 30, SHORTEST = 4;

const view = {
  from: 0,
  to: 1,
  /** Pixels: of the chart, of the labels left of the time axis. */
  width: 0,
  height: 0,
  left: 0,
  get scroll() { return stage.scrollTop; },
  get perPixel() { return (this.to - this.from) / Math.max(1, this.width - this.left); },
};

/** What is selected: a bar, a step, or nothing; and the lane in which that is. */
const selection = { bar: NONE, step: NONE, lane: NONE };

let stage, trace;
let changed = null, moving = 0;

const xOf = (at) => view.left + (at - view.from) / view.perPixel;
const timeAt = (x) => view.from + (x - view.left) * view.perPixel;

/** Asks for one drawing before the next frame. */
function redraw() {
  if (changed !== null) return;
  changed = requestAnimationFrame(() => {
    changed = null;
    drawAll();
  });
}

/** All there is to be seen, with something around it. */
function longest() {
  return (trace.end - trace.begin) * 1.04 + 2;
}

/** Shows the time from `from` to `to`, as far as there is any. */
function show(from, to) {
  const span = Math.min(Math.max(to - from, SHORTEST), longest());
  const middle = (from + to) / 2;
  const pad = longest() - (trace.end - trace.begin);
  const lowest = trace.begin - pad / 2, highest = trace.end + pad / 2;
  view.from = Math.min(Math.max(middle - span / 2, lowest), highest - span);
  view.to = view.from + span;
  redraw();
}

function showAll() {
  glide(trace.begin - 1, trace.end + longest());
}

/** The same as `show`, on the way there in steps that the eye can follow. */
function glide(from, to) {
  cancelAnimationFrame(moving);
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return show(from, to);
  const start = performance.now(), [from0, to0] = [view.from, view.to];
  show(from, to);
  const [from1, to1] = [view.from, view.to];
  show(from0, to0);
  const frame = (now) => {
    const part = Math.min(1, Math.max(0, (now - start) / 180));
    const eased = 1 - (1 - part) ** 3;
    // Spans are passed by factors: so a zoom over many orders looks even.
    const span = (to0 - from0) * ((to1 - from1) / (to0 - from0)) ** eased;
    const share = Math.abs(to1 - from1 - (to0 - from0)) < 1e-9 ? eased : (span - (to0 - from0)) / (to1 - from1 - (to0 - from0));
    const begin = from0 + (from1 - from0) * share;
    if (part < 1) {
      show(begin, begin + span);
      moving = requestAnimationFrame(frame);
    } else {
      show(from1, to1);
    }
  };
  moving = requestAnimationFrame(frame);
}

/** Makes the time that is shown longer by a factor, around a point that stays where it is. */
function zoom(factor, x, gliding = false) {
  const at = x === undefined ? (view.from + view.to) / 2 : timeAt(x);
  const span = Math.min(Math.max((view.to - view.from) * factor, SHORTEST), longest());
  const share = (at - view.from) / (view.to - view.from);
  (gliding ? glide : show)(at - span * share, at + span * (1 - share));
}

/** Moves by pixels. */
function pan(dx, dy = 0) {
  cancelAnimationFrame(moving);
  const ms = dx * view.perPixel;
  show(view.from + ms, view.to + ms);
  if (dy !== 0) stage.scrollTop += dy;
}

/** Brings a lane into sight. */
function scrollToLane(number) {
  const group = trace.groups[trace.lanes[number].group];
  group.folded = false;
  layOut(trace, view.from, view.to);
  fitReach();
  const item = layout.items[layout.places.get(number)];
  if (!item) return;
  const room = view.height - AXIS_HEIGHT - GROUP_HEIGHT;
  if (item.y - GROUP_HEIGHT < stage.scrollTop || item.y + item.height > stage.scrollTop + view.height - AXIS_HEIGHT) {
    stage.scrollTop = Math.max(0, item.y - room / 3);
  }
}

/** Brings a time into sight, with something around it. */
function bringTime(begin, end) {
  const span = view.to - view.from;
  if (begin >= view.from && end <= view.to && end - begin > span / 400) return;
  const wanted = end - begin > span || end - begin < span / 400 ? Math.max((end - begin) * 3, end > begin ? SHORTEST : Math.min(span, 10 * SECOND)) : span;
  const middle = (begin + end) / 2;
  glide(middle - wanted / 2, middle + wanted / 2);
}
