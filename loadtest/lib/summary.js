// The summary of a run: a table on the terminal, and all metrics as JSON.

const COLUMNS = ['route', 'requests', 'p50 ms', 'p95 ms', 'p99 ms', 'max ms'];

// Thresholds for the routes that the summary shows, each of which has to be requested. k6 groups metrics by tag only where
// `thresholds` names them.
export function byRoute(names) {
  return Object.fromEntries(
    names.flatMap((name) => [
      [`http_req_duration{name:${name}}`, []],
      [`http_reqs{name:${name}}`, ['count>0']],
    ]),
  );
}

export const STATS = ['avg', 'min', 'med', 'p(95)', 'p(99)', 'max'];

// The `handleSummary` of a script.
export function summary(script) {
  return (result) => ({
    stdout: text(script, result),
    [`${__ENV.TIDEMARK_LOADTEST_RESULTS || '.'}/${script}.json`]: JSON.stringify(result, null, 2),
  });
}

function text(script, { metrics, state, root_group: root }) {
  const lines = ['', `${script}: ${(state.testRunDurationMs / 1000).toFixed(0)} s`, ''];
  lines.push(...table([COLUMNS, ...routes(metrics)]), '');
  for (const { name, passes, fails } of checks(root)) {
    lines.push(`  ${fails ? 'FAILED' : 'ok    '} ${name}: ${passes} of ${passes + fails}`);
  }
  for (const [name, { thresholds = {} }] of Object.entries(metrics)) {
    for (const [rule, { ok }] of Object.entries(thresholds)) {
      lines.push(`  ${ok ? 'ok    ' : 'FAILED'} ${name} ${rule}`);
    }
  }
  return `${lines.join('\n')}\n\n`;
}

function routes(metrics) {
  return Object.entries(metrics)
    .map(([metric, { values }]) => [metric.match(/^http_req_duration\{name:(.+)\}$/), values])
    .filter(([match]) => match)
    .map(([[, name], values]) => [name, metrics[`http_reqs{name:${name}}`]?.values.count ?? 0, values])
    .filter(([, count]) => count > 0)
    .map(([name, count, values]) => [name, count, values.med, values['p(95)'], values['p(99)'], values.max])
    .map((row) => row.map((value, at) => (at > 1 ? value.toFixed(1) : String(value))));
}

function checks({ checks: own = [], groups = [] }) {
  return [...own, ...groups.flatMap(checks)];
}

function table(rows) {
  const widths = COLUMNS.map((_, at) => Math.max(...rows.map((row) => row[at].length)));
  return rows.map((row) => `  ${row.map((cell, at) => (at ? cell.padStart(widths[at]) : cell.padEnd(widths[at]))).join('  ')}`);
}
