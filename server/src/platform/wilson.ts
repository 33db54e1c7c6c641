const Z_95 = 1.96

/**
 * The Wilson score interval: between which bounds the true rate lies with 95 % confidence when `rate` was observed over
 * `total` trials. Unlike the normal interval it stays within 0..1 and keeps a width when every trial had the same result.
 */
export function wilsonInterval(rate: number, total: number): { low: number; high: number } {
  if (total === 0) return { low: 0, high: 1 }
  const z2 = Z_95 * Z_95
  const centre = rate + z2 / (2 * total)
  const spread = Z_95 * Math.sqrt((rate * (1 - rate) + z2 / (4 * total)) / total)
  const scale = 1 + z2 / total
  return { low: Math.max(0, (centre - spread) / scale), high: Math.min(1, (centre + spread) / scale) }
}
