/* Times for people. */

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const AXIS_STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE,
  10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY,
];

/** The distance between lines of an axis, so that at most `most` are in `span` milliseconds. */
function axisStep(span, most) {
  return AXIS_STEPS.find((step) => span / step <= most) ?? Math.ceil(span / most / DAY) * DAY;
}

const two = (n) => String(n).padStart(2, '0');

/** A time as exact as a distance of `step` milliseconds asks for. */
function timeText(at, step) {
  if (at < 0) return `−${timeText(-at, step)}`;
  at = Math.round(at);
  if (at === 0) return '0';
  const d = Math.floor(at / DAY), h = Math.floor(at / HOUR) % 24, m = Math.floor(at / MINUTE) % 60, s = Math.floor(at / SECOND) % 60;
  if (step < SECOND) {
    if (at < SECOND) return `${at} ms`;
    const places = step % 100 === 0 ? 1 : step % 10 === 0 ? 2 : 3;
    const part = String(Math.floor((at % SECOND) / 10 ** (3 - places))).padStart(places, '0');
    if (at < MINUTE) return `${s}.${part} s`;
    if (at < HOUR) return `${m} min ${two(s)}.${part} s`;
    return `${Math.floor(at / HOUR)} h ${two(m)} min ${two(s)}.${part} s`;
  }
  if (at < MINUTE) return `${s} s`;
  if (at < HOUR) return s === 0 && step >= MINUTE ? `${m} min` : `${m} min ${two(s)} s`;
  if (at < DAY) {
    if (step < MINUTE) return `${h} h ${two(m)} min ${two(s)} s`;
    return m === 0 && step >= HOUR ? `${h} h` : `${h} h ${two(m)} min`;
  }
  if (step < MINUTE) return `${d} d ${two(h)} h ${two(m)} min ${two(s)} s`;
  if (step < HOUR) return `${d} d ${two(h)} h ${two(m)} min`;
  return h === 0 ? `${d} d` : `${d} d ${two(h)} h`;
}

/** How long something took. */
function durationText(ms) {
  if (ms < 1) return '0 ms';
  const step = ms < 10 * SECOND ? 10 : ms < MINUTE ? 100 : ms < HOUR ? SECOND : ms < DAY ? MINUTE : HOUR;
  return timeText(ms, step);
}

/** A time to the millisecond. */
const exactTime = (at) => timeText(at, 1);

/** Wall time, where it is known. */
function wallText(trace, at) {
  if (trace.start === null) return '';
  const date = new Date(trace.start + Math.round(at));
  return Number.isNaN(date.getTime()) ? '' : date.toISOString().replace('T', ' ').replace('Z', ' UTC');
}
