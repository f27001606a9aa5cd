// Random choices: ids of the organization, and typical windows.

import { fail } from 'k6';
import { data, get } from './api.js';

// Up to `most` entries of a list, page by page.
export function collect(path, most) {
  const entries = [];
  let cursor;
  do {
    const response = get(path, path, { limit: Math.min(200, most - entries.length), cursor });
    entries.push(...data(response));
    cursor = response.json('pagination.next_cursor');
  } while (cursor && entries.length < most);
  return entries;
}

// The entries, of which a script needs one.
export function inWords(what, entries) {
  if (entries.length === 0) {
    fail(`the organization has no ${what}, which this script needs: use a key of one with history, as make demo creates`);
  }
  return entries;
}

// Ids and captions, collected in `setup` for all clients. Those that are `needed` by name must not be empty.
export function inventory(videos, needed = ['accounts']) {
  const ids = (path, most) => collect(path, most).map((entry) => entry.id);
  const all = collect('/account-videos', videos);
  const found = {
    accounts: ids('/accounts', 200),
    creators: ids('/creators', 200),
    videos: all.map((video) => video.id),
    captions: all.map((video) => video.description || '').filter((caption) => caption.length >= 20),
  };
  needed.forEach((name) => inWords(name, found[name]));
  return found;
}

export function pick(list) {
  return list[Math.floor(Math.random() * list.length)];
}

// Up to `count` different elements.
export function sample(list, count) {
  const left = list.slice();
  const chosen = [];
  while (chosen.length < count && left.length) {
    chosen.push(left.splice(Math.floor(Math.random() * left.length), 1)[0]);
  }
  return chosen;
}

// Mostly the default window, sometimes a quarter, rarely custom days.
export function period() {
  const chance = Math.random();
  if (chance < 0.6) return { period: '30d' };
  if (chance < 0.75) return { period: '7d' };
  if (chance < 0.9) return { period: '90d' };
  return days(7, 180);
}

// A custom window of `least` to `most` days that ended within the last half year.
export function days(least, most) {
  const length = least + Math.floor(Math.random() * (most - least + 1));
  const ended = Math.floor(Math.random() * 180);
  const day = (ago) => new Date(Date.now() - ago * 86400000).toISOString().slice(0, 10);
  return { start_date: day(ended + length - 1), end_date: day(ended) };
}

// A random substring by characters, not by UTF-16 code units.
export function excerpt(text, length) {
  const characters = Array.from(text);
  const start = Math.floor(Math.random() * Math.max(1, characters.length - length));
  return characters.slice(start, start + length).join('');
}
