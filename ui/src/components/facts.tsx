// Facts of a record: a name and a value each.

import type { ComponentChildren } from "preact";
import * as css from "./facts.module.css";

export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class={css.facts}>
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt class="quiet small">{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
