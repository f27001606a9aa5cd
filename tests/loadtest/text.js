// Tests lib/text.js.

import { check } from 'k6';
import { contains, fold } from '../../loadtest/lib/text.js';

export const options = { thresholds: { checks: ['rate==1'] } };

const FOLDED = [
  ['Straße É 100%', 'straße é 100%'],
  ['İSTANBUL', 'istanbul'],
  ['ΛΟΓΟΣ ΛΟΓΟΣ', 'λογοσ λογοσ'],
  ['𐐀 Часть 😳', '𐐨 часть 😳'],
];

export default function () {
  for (const [text, expected] of FOLDED) {
    check(text, { [`${text} is folded`]: () => fold(text) === expected });
  }
  check(FOLDED, {
    'a text contains its parts in any case': () => contains('Trần Minh', ' TRẦN ') && contains('ΛΟΓΟΣ', 'γοσ'),
    'a text does not contain others': () => !contains('Trần Minh', 'tran') && !contains('é', 'è'),
  });
}
