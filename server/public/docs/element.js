/** Creates an element; empty children are left out. Strings are inserted as text, never parsed as markup. */
export const el = (tag, props = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), props)
  node.append(...children.filter((child) => child || child === 0))
  return node
}
