// Validates a response against its OpenAPI schema: the subset of JSON Schema that the document uses for responses. Unknown keywords
// are ignored; additional members are allowed.

// Violations of a schema, as texts that start with a path.
export function violations(document, schema, value, path = '') {
  if (schema.$ref) return violations(document, resolve(document, schema.$ref), value, path);
  const choices = schema.anyOf || schema.oneOf;
  if (choices) {
    return choices.some((choice) => violations(document, choice, value, path).length === 0)
      ? []
      : [`${path} matches no alternative`];
  }
  const found = (schema.allOf || []).flatMap((each) => violations(document, each, value, path));
  if ('const' in schema && value !== schema.const) found.push(`${path} is not ${schema.const}`);
  if (schema.enum && !schema.enum.includes(value)) found.push(`${path} is ${value}, not one of ${schema.enum}`);
  const types = schema.type === undefined ? [] : [].concat(schema.type);
  if (types.length && !types.some((type) => is(type, value))) {
    return [...found, `${path} is ${JSON.stringify(value)}, not ${types.join(' or ')}`];
  }
  if (is('object', value)) {
    for (const name of schema.required || []) {
      if (!(name in value)) found.push(`${path}/${name} is missing`);
    }
    for (const [name, member] of Object.entries(value)) {
      const its = schema.properties?.[name] ?? (is('object', schema.additionalProperties) && schema.additionalProperties);
      if (its) found.push(...violations(document, its, member, `${path}/${name}`));
    }
  }
  if (Array.isArray(value) && schema.items) {
    value.forEach((item, at) => found.push(...violations(document, schema.items, item, `${path}/${at}`)));
  }
  return found;
}

function resolve(document, reference) {
  return reference
    .split('/')
    .slice(1)
    .reduce((value, name) => value[name.replace(/~1/g, '/').replace(/~0/g, '~')], document);
}

function is(type, value) {
  switch (type) {
    case 'null':
      return value === null;
    case 'array':
      return Array.isArray(value);
    case 'object':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}
