/** An element with text and children; what is absent is left out. Nothing is ever read as markup. */
export const el = (tag, props = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), props)
  node.append(...children.filter((child) => child || child === 0))
  return node
}

/** A sentence in which `this` is code. */
export const prose = (text = '') =>
  text.split('`').map((part, nth) => (nth % 2 === 1 ? el('code', { textContent: part }) : part))
