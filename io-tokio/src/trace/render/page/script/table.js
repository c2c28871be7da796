/* The table of steps. Only rows in sight are elements of the page. */

const ROW_HEIGHT = 22;
/** Browsers do not draw elements that are much higher. Longer tables scroll by shares of that. */
const MOST_HEIGHT = 8_000_000;

const table = {
  box: null, body: null, rows: [], first: -1, last: -1,

  start() {
    this.box = document.getElementById('table');
    this.body = document.getElementById('table-body');
    this.box.setAttribute('aria-rowcount', String(trace.steps.count + 1));
    this.body.style.height = `${this.height()}px`;
    this.box.addEventListener('scroll', () => this.draw());
    this.box.addEventListener('click', (event) => {
      const row = event.target.closest('#table-body .row');
      if (row) selectStep(Number(row.dataset.step), { bring: true });
    });
    this.box.addEventListener('keydown', (event) => this.key(event));
    this.draw();
  },

  height() { return Math.min(MOST_HEIGHT, trace.steps.count * ROW_HEIGHT); },
  room() { return Math.max(ROW_HEIGHT, this.box.clientHeight - ROW_HEIGHT); },

  /** Steps that are out of sight above, as a number with a fraction. */
  above() {
    const whole = trace.steps.count * ROW_HEIGHT;
    if (whole <= MOST_HEIGHT) return this.box.scrollTop / ROW_HEIGHT;
    const share = this.box.scrollTop / Math.max(1, this.height() - this.room());
    return share * (trace.steps.count - this.room() / ROW_HEIGHT);
  },

  scrollTo(step) {
    const whole = trace.steps.count * ROW_HEIGHT;
    if (whole <= MOST_HEIGHT) this.box.scrollTop = step * ROW_HEIGHT;
    else this.box.scrollTop = (step / (trace.steps.count - this.room() / ROW_HEIGHT)) * (this.height() - this.room());
  },

  /** Brings a step into sight. */
  reveal(step) {
    const above = this.above(), fit = Math.floor(this.room() / ROW_HEIGHT);
    if (step < above || step >= above + fit) this.scrollTo(Math.max(0, step - Math.floor(fit / 3)));
    this.draw();
  },

  draw() {
    const above = this.above(), first = Math.max(0, Math.floor(above));
    const count = Math.min(trace.steps.count - first, Math.ceil(this.room() / ROW_HEIGHT) + 2);
    while (this.rows.length < count) {
      const row = this.emptyRow();
      row.id = `row-${this.rows.length}`;
      this.rows.push(this.body.appendChild(row));
    }
    while (this.rows.length > Math.max(0, count)) this.rows.pop().remove();
    const top = this.box.scrollTop - (above - first) * ROW_HEIGHT;
    this.rows.forEach((row, i) => this.fill(row, first + i, top + i * ROW_HEIGHT));
    const chosen = this.rows.find((row) => row.classList.contains('chosen'));
    if (chosen) this.box.setAttribute('aria-activedescendant', chosen.id);
    else this.box.removeAttribute('aria-activedescendant');
  },

  emptyRow() {
    const row = element('div', { className: 'row' }, ...Array.from({ length: 4 }, () => {
      const cell = element('span');
      cell.setAttribute('role', 'gridcell');
      return cell;
    }));
    row.setAttribute('role', 'row');
    return row;
  },

  fill(row, step, top) {
    const { steps, texts, lists } = trace;
    const chosen = selection.step === step;
    row.className = `row${step % 2 ? ' even' : ''}${trace.brokenSteps.has(step) ? ' broken' : ''}${search.steps.has(step) ? ' hit' : ''}${chosen ? ' chosen' : ''}`;
    row.style.transform = `translateY(${top}px)`;
    row.setAttribute('aria-rowindex', String(step + 2));
    row.setAttribute('aria-selected', String(chosen));
    if (row.dataset.step === String(step)) return;
    row.dataset.step = String(step);
    const effects = lists[steps.effects[step]].map((text) => texts[text]).join(' · ');
    const life = steps.lives > 1 ? `${steps.life[step] + 1}:` : '';
    const words = [`${life}${steps.n[step]}`, exactTime(steps.at[step]), texts[steps.event[step]], effects];
    words.forEach((text, i) => {
      row.children[i].textContent = text;
      row.children[i].title = i > 1 ? text : '';
    });
  },

  key(event) {
    const { count } = trace.steps;
    if (count === 0) return;
    const page = Math.max(1, Math.floor(this.room() / ROW_HEIGHT) - 1);
    const from = selection.step === NONE ? Math.floor(this.above()) - 1 : selection.step;
    const to = { ArrowDown: from + 1, ArrowUp: from - 1, PageDown: from + page, PageUp: from - page, Home: 0, End: count - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    selectStep(Math.min(count - 1, Math.max(0, to)), { bring: true });
  },
};
