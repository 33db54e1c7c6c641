/** A development chain has Base's id, so a signature for it would also be good on Base. */
export const DevelopmentConsent = () => (
  <label className="consent">
    <input type="checkbox" name="development" required />
    <span>
      This service runs a development chain with the id of Base. The account I use has no money on Base, because what it
      signs here could be used there.
    </span>
  </label>
)
