/* Mouse, pen and fingers on the chart. */

/** Pixels that a pointer may move before a press becomes a drag. */
const STILL = 4;
let marking = null;

const wheelFactor = (event) => Math.exp(Math.min(60, Math.max(-60, event.deltaY * (event.deltaMode === 1 ? 18 : 1))) * (event.ctrlKey && event.deltaMode === 0 && Math.abs(event.deltaY) < 30 ? 0.012 : 0.004));

function usePointer() {
  const held = new Map();
  let press = null, pinch = null;

  stage.addEventListener('wheel', (event) => {
    const at = place(event);
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const scrolls = stage.scrollHeight > stage.clientHeight + 1;
    if (event.ctrlKey || event.metaKey || at.y < AXIS_HEIGHT || (!sideways && !scrolls)) {
      event.preventDefault();
      cancelAnimationFrame(moving);
      zoom(wheelFactor(event), Math.max(view.left, at.x));
    } else if (sideways) {
      event.preventDefault();
      pan(event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX);
    }
  }, { passive: false });
  stage.addEventListener('scroll', redraw);

  chart.addEventListener('pointerdown', (event) => {
    const at = place(event);
    chart.focus({ preventScroll: true });
    chart.setPointerCapture(event.pointerId);
    held.set(event.pointerId, at);
    hideTip();
    if (held.size === 2) {
      press = marking = null;
      pinch = fingers(held);
    } else if (event.button === 0) {
      press = { at, last: at, moved: false, axis: at.y < AXIS_HEIGHT && at.x > view.left };
    }
  });
  chart.addEventListener('pointermove', (event) => {
    const at = place(event);
    pointer = event.pointerType === 'touch' ? null : at;
    if (held.has(event.pointerId)) held.set(event.pointerId, at);
    if (pinch && held.size === 2) {
      const now = fingers(held);
      zoom(pinch.apart / Math.max(10, now.apart), now.x);
      pan(pinch.x - now.x, pinch.y - now.y);
      pinch = now;
    } else if (press) {
      if (!press.moved && Math.hypot(at.x - press.at.x, at.y - press.at.y) < STILL) return;
      press.moved = true;
      if (press.axis || marking) marking = { from: timeAt(press.at.x), to: timeAt(Math.max(view.left, at.x)) };
      else {
        chart.classList.add('drags');
        pan(press.last.x - at.x, press.last.y - at.y);
      }
      press.last = at;
      redraw();
    } else {
      hover(at);
    }
  });
  const release = (event) => {
    held.delete(event.pointerId);
    if (held.size < 2) pinch = null;
    chart.classList.remove('drags');
    if (press && event.type === 'pointerup') {
      if (marking) {
        const [from, to] = [Math.min(marking.from, marking.to), Math.max(marking.from, marking.to)];
        if (to - from > view.perPixel * STILL) glide(from, to);
      } else if (!press.moved) {
        click(place(event));
      }
    }
    press = marking = null;
    redraw();
  };
  chart.addEventListener('pointerup', release);
  chart.addEventListener('pointercancel', release);
  chart.addEventListener('pointerleave', () => {
    pointer = null;
    hideTip();
    redraw();
  });
  chart.addEventListener('dblclick', (event) => {
    const found = pick(place(event).x, place(event).y);
    if (found?.bar !== undefined) zoomToBar(found.bar);
    else if (place(event).y < AXIS_HEIGHT) showAll();
    else zoom(0.4, place(event).x, true);
  });
}

function place(event) {
  const box = chart.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

function fingers(held) {
  const [a, b] = [...held.values()];
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.hypot(a.x - b.x, a.y - b.y) };
}

function hover(at) {
  const found = pick(at.x, at.y);
  chart.classList.toggle('over', Boolean(found && (found.bar !== undefined || found.mark || found.violation || found.group !== undefined)));
  chart.classList.toggle('axis', at.y < AXIS_HEIGHT && at.x > view.left && !found);
  const words = tipOf(found);
  if (words) showTip(at, words);
  else hideTip();
  redraw();
}

function showTip(at, words) {
  const tip = document.getElementById('tip');
  tip.replaceChildren(...words);
  tip.hidden = false;
  const box = chart.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const x = Math.min(box.left + at.x + 14, innerWidth - size.width - 8);
  const below = box.top + at.y + 18;
  const y = below + size.height > innerHeight - 8 ? box.top + at.y - size.height - 12 : below;
  tip.style.transform = `translate(${Math.max(8, x)}px, ${Math.max(8, y)}px)`;
}

function hideTip() {
  document.getElementById('tip').hidden = true;
}

function click(at) {
  const found = pick(at.x, at.y);
  if (!found) return selectNothing();
  if (found.group !== undefined) return fold(found.group);
  if (found.violation) return goToViolation(found.violation);
  if (found.mark && found.mark.step !== NONE) return selectStep(found.mark.step, { lane: found.lane });
  if (found.bar !== undefined) return selectBar(found.bar);
  Object.assign(selection, { bar: NONE, step: NONE, lane: found.lane });
  // The table goes to the time that was pressed.
  if (at.x > view.left && trace.steps.count > 0) table.reveal(Math.min(trace.steps.count - 1, lowerBound(trace.steps.at, timeAt(at.x))));
  selected(trace.lanes[found.lane].label);
}

function fold(group) {
  trace.groups[group].folded = !trace.groups[group].folded;
  layOut(trace, view.from, view.to);
  redraw();
}

function zoomToBar(bar) {
  const { begin, end } = trace.bars;
  selectBar(bar);
  const long = Math.max(end[bar] - begin[bar], SHORTEST / 2);
  glide(begin[bar] - long * 0.15, end[bar] + long * 0.15);
}
