// Figures for people.

/** 12345 as 12,345; nothing known as a dash. */
export function number(value) {
  return value === null || value === undefined ? "–" : Number(value).toLocaleString("en");
}

/** A number of things: 1 row, 2 rows. */
export function many(count, thing) {
  return `${number(count)} ${thing}${count === 1 ? "" : "s"}`;
}

/** Seconds as a person would say them. */
export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.01) return "0 s";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 120) return `${value.toFixed(value < 10 ? 1 : 0)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  if (value < 172800) return `${Math.round(value / 3600)} h`;
  return `${Math.round(value / 86400)} days`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value < 10 && unit ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** A moment as a time of day, with the date where it is not today. */
export function time(iso) {
  if (!iso) return "–";
  const at = new Date(iso);
  const today = at.toDateString() === new Date().toDateString();
  return at.toLocaleString("en-GB", today ? { timeStyle: "medium" } : { dateStyle: "medium", timeStyle: "short" });
}

/** A range of transaction numbers. */
export function range(first, last) {
  if (first > last) return `none (at ${number(last)})`;
  return first === last ? number(last) : `${number(first)}–${number(last)}`;
}

const KINDS = { postgres: "PostgreSQL", mariadb: "MariaDB", sqlite: "SQLite" };

export function kind(name) {
  return KINDS[name] ?? name ?? "";
}

const STATES = {
  ok: "in order",
  unreachable: "not reachable",
  "not looked at yet": "looking …",
  "not-set-up": "not set up",
  "no-slot": "no feed set up",
  "triggers-lost": "change log has a gap",
  "never run": "never run",
};

/** A state's name in words. */
export function state(name) {
  return STATES[name] ?? name.replaceAll("-", " ");
}
