// The conformance suite imports `globSync`, which Node.js has since 22, for commands that tests do not use.
import { register } from 'node:module';

const shim = "data:text/javascript,export * from 'node:fs'; export const globSync = () => [];";
const hooks = `export const resolve = (name, context, next) =>
    name === 'fs' && context.parentURL.includes('/conformance/dist/')
        ? { url: ${JSON.stringify(shim)}, shortCircuit: true }
        : next(name, context);`;

register(`data:text/javascript,${encodeURIComponent(hooks)}`);
