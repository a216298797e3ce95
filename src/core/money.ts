/** Such as `$12.50`, or `$0.0005` for fractions of a cent. */
export function formatMoney(usd: number): string {
  if (usd > 0 && usd < 0.00005) return '<$0.0001'
  return usd < 0.1 ? `$${Number(usd.toFixed(4))}` : `$${usd.toFixed(2)}`
}
