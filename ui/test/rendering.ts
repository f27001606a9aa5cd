// Renders components without a browser, in as much of a document as Preact needs.

import { type ComponentChild, createElement, render } from "preact";

class FakeNode {
  readonly nodeType = 1;
  readonly namespaceURI = "http://www.w3.org/1999/xhtml";
  readonly ownerDocument = {
    createElementNS: () => new FakeNode(),
    createTextNode: (text: string) => new FakeNode(text),
  };
  readonly style = {};
  readonly childNodes: FakeNode[] = [];
  parentNode: FakeNode | null = null;

  constructor(public data = "") {}

  get firstChild(): FakeNode | null {
    return this.childNodes[0] ?? null;
  }
  get nextSibling(): FakeNode | null {
    const siblings = this.parentNode?.childNodes ?? [];
    return siblings[siblings.indexOf(this) + 1] ?? null;
  }
  get textContent(): string {
    return this.data + this.childNodes.map(({ textContent }) => textContent).join("");
  }
  insertBefore(node: FakeNode, next: FakeNode | null): void {
    node.remove();
    this.childNodes.splice(next ? this.childNodes.indexOf(next) : this.childNodes.length, 0, node);
    node.parentNode = this;
  }
  removeChild(node: FakeNode): void {
    this.childNodes.splice(this.childNodes.indexOf(node), 1);
    node.parentNode = null;
  }
  remove(): void {
    this.parentNode?.removeChild(this);
  }
  setAttribute(): void {}
  removeAttribute(): void {}
  addEventListener(): void {}
  removeEventListener(): void {}
}

/** Changes something, and waits until everything that this loads is there. */
async function settled(change: () => void): Promise<void> {
  change();
  await new Promise(setImmediate);
}

/** An empty page that components are rendered into. */
export function emptyPage() {
  const root = new FakeNode();
  return {
    render: (child: ComponentChild) => settled(() => render(child, root as unknown as Element)),
    text: () => root.textContent,
  };
}

/** A component that has nothing but a hook. */
export function rendered<Input, Output>(hook: (input: Input) => Output) {
  const page = emptyPage();
  let output: Output;
  const Probe = ({ input }: { input: Input }) => {
    output = hook(input);
    return null;
  };
  return {
    render: (input: Input) => page.render(createElement(Probe, { input })),
    change: (change: (output: Output) => void) => settled(() => change(output)),
    current: () => output,
  };
}
