// Tests lib/shape.js.

import { check } from 'k6';
import { violations } from '../../loadtest/lib/shape.js';

export const options = { thresholds: { checks: ['rate==1'] } };

const DOCUMENT = { components: { schemas: { Id: { type: 'string' } } } };

const ENTRY = {
  type: 'object',
  required: ['id', 'size'],
  properties: {
    id: { $ref: '#/components/schemas/Id' },
    size: { type: ['integer', 'null'] },
    kind: { anyOf: [{ const: 'a' }, { enum: ['b', 'c'] }] },
    tags: { type: 'array', items: { type: 'string' } },
    by_day: { type: 'object', additionalProperties: { type: 'integer' } },
  },
};

const CASES = [
  [{ id: 'x', size: 1, kind: 'a', tags: ['y'], by_day: { '7d': 1 }, more: true }, []],
  [{ id: 'x', size: null, kind: 'c' }, []],
  [{ size: 1 }, ['/id is missing']],
  [{ id: 1, size: 1 }, ['/id is 1, not string']],
  [{ id: 'x', size: 1.5 }, ['/size is 1.5, not integer or null']],
  [{ id: 'x', size: 1, kind: 'd' }, ['/kind matches no alternative']],
  [{ id: 'x', size: 1, tags: ['y', 2] }, ['/tags/1 is 2, not string']],
  [{ id: 'x', size: 1, by_day: { '7d': 'z' } }, ['/by_day/7d is "z", not integer']],
  [[], [' is [], not object']],
];

export default function () {
  for (const [value, expected] of CASES) {
    const found = violations(DOCUMENT, ENTRY, value);
    check(found, { [JSON.stringify(value)]: () => JSON.stringify(found) === JSON.stringify(expected) });
  }
}
