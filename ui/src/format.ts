// Numbers, rates, days and times as text. Null is an en dash, never 0. Formats are fixed, not the browser's locale, so that a link
// shows the same to everyone.

export const NONE = "–";
const MINUS = "−";
const THIN_SPACE = "\u2009";
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

type Value = number | null | undefined;

function isUnknown(value: Value): value is null | undefined {
  return value === null || value === undefined;
}

function withSign(value: number, digits: string): string {
  return value < 0 ? MINUS + digits : digits;
}

/** All digits, in groups of three: 1 204 558. */
export function exact(value: Value): string {
  if (isUnknown(value)) return NONE;
  const [whole = "", fraction] = Math.abs(value).toString().split(".");
  const digits = whole.replace(/\B(?=(\d{3})+$)/g, THIN_SPACE);
  return withSign(value, fraction ? `${digits}.${fraction}` : digits);
}

/** An exact amount, whose decimals stay as they are: 1 204.50 EUR. */
export function money(amount: string, currency: string): string {
  const [whole = "", fraction] = amount.split(".");
  const digits = whole.replace(/\B(?=(\d{3})+$)/g, THIN_SPACE);
  return `${fraction ? `${digits}.${fraction}` : digits}\u00a0${currency}`;
}

/** A count with its noun. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${exact(count)} ${count === 1 ? one : many}`;
}

/** Three significant digits of a number from 1 to 1 000: 1.20, 12.3, 123. */
function threeDigits(size: number): string {
  return size.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

/** Rounded to three significant digits with a unit: 999, 1.20k, 12.3M, 1.50B; 999 999 is 1.00M. */
export function compact(value: Value): string {
  if (isUnknown(value)) return NONE;
  const size = Math.abs(value);
  const unit = [
    { from: 1e12, name: "T" },
    { from: 1e9, name: "B" },
    { from: 1e6, name: "M" },
    { from: 1e3, name: "k" },
  ].find(({ from }) => size >= from * 0.9995);
  if (!unit || size < 1e3) return withSign(value, String(Math.trunc(size)));
  return withSign(value, `${threeDigits(size / unit.from)}${unit.name}`);
}

/** A gain: compact, with a plus sign when positive. */
export function gain(value: Value): string {
  return !isUnknown(value) && value > 0 ? `+${compact(value)}` : compact(value);
}

/** A ratio as a percentage with two digits: 0.0483 is 4.83 %. */
export function rate(value: Value): string {
  return isUnknown(value) ? NONE : `${withSign(value, Math.abs(value * 100).toFixed(2))}${THIN_SPACE}%`;
}

/** How many times as much: 3.4 ×, 1 221 ×. */
export function times(value: Value): string {
  if (isUnknown(value)) return NONE;
  return `${exact(value >= 100 ? Math.round(value) : Math.round(value * 10) / 10)}${THIN_SPACE}×`;
}

/** From this percentage on, a change is said as a multiple. */
const MULTIPLE_FROM = 1_000;

/** A change in percent with its sign and at most three significant digits: +12.5 %; a large one as a multiple: ×20. */
export function change(percent: Value): string {
  if (isUnknown(percent)) return NONE;
  if (percent >= MULTIPLE_FROM) {
    const factor = percent / 100 + 1;
    return `×${factor >= 100 ? exact(Math.round(factor)) : Number(threeDigits(factor))}`;
  }
  const size = Math.abs(percent);
  const digits = size >= 1 ? exact(Number(threeDigits(size))) : String(Math.round(size * 100) / 100);
  const sign = percent > 0 ? "+" : percent < 0 ? MINUS : "";
  return `${sign}${digits}${THIN_SPACE}%`;
}

/** The month of a UTC day: March 2026. */
export function month(date: string): string {
  const name = new Intl.DateTimeFormat("en", { month: "long", timeZone: "UTC" }).format(new Date(date));
  return `${name} ${date.slice(0, 4)}`;
}

/** A UTC day, `2026-03-09`, as 9 Mar; with its year where that is not the year of `beside`. */
export function day(date: string, beside = ""): string {
  const [year, month, number] = date.split("-");
  const text = `${Number(number)} ${MONTHS[Number(month) - 1] ?? ""}`;
  return year === beside.slice(0, 4) ? text : `${text} ${year}`;
}

/** The day of a time, with its year unless that is the current one. */
export function postedOn(time: string | null): string {
  return time ? day(time.slice(0, 10), new Date().toISOString()) : NONE;
}

/** Two days: 9 Mar – 7 Apr 2026. */
export function days(start: string, end: string): string {
  return start === end ? day(start) : `${day(start, end)} – ${day(end)}`;
}

/** A time in UTC: 9 Mar 2026, 14:05 UTC. */
export function time(value: string | null | undefined): string {
  if (!value) return NONE;
  const iso = new Date(value).toISOString();
  return `${day(iso.slice(0, 10))}, ${iso.slice(11, 16)} UTC`;
}

/** A duration in the largest unit that has at least one: 45 s, 12 min, 3 h, 5 d. */
export function duration(seconds: number): string {
  const units = [
    { seconds: 86_400, name: "d" },
    { seconds: 3_600, name: "h" },
    { seconds: 60, name: "min" },
  ];
  const unit = units.find((unit) => seconds >= unit.seconds) ?? { seconds: 1, name: "s" };
  return `${Math.floor(seconds / unit.seconds)}${THIN_SPACE}${unit.name}`;
}

/** The length of a video: 0:07, 1:23, 1:02:03. */
export function clock(seconds: number): string {
  const whole = Math.round(seconds);
  const [hours, minutes, rest] = [Math.floor(whole / 3_600), Math.floor(whole / 60) % 60, whole % 60];
  const parts = hours > 0 ? [hours, String(minutes).padStart(2, "0")] : [minutes];
  return [...parts, String(rest).padStart(2, "0")].join(":");
}

/** Up to two initials of a name, for a picture that is missing. */
export function initials(name: string): string {
  const words = name.split(/[\s._-]+/).filter((word) => /\p{L}|\p{N}/u.test(word));
  const letters = words
    .slice(0, 2)
    .map((word) => [...word].find((letter) => /\p{L}|\p{N}/u.test(letter)) ?? "");
  return letters.join("").toUpperCase() || "?";
}
