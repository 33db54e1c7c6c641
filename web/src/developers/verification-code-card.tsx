import { useState } from 'react'
import { CopyButton } from '../components/copy-button.tsx'
import { Card, MutedText, TextBlock } from '../components/ui.tsx'
import { verificationSamples } from './verification-code.ts'

export function VerificationCodeCard() {
  const [selected, setSelected] = useState(0)
  const { name, text, note } = verificationSamples[selected]!
  return (
    <Card title="Verify a delivery" note="SIGNING_SECRET is the secret that was shown once">
      <fieldset className="choices">
        <legend className="visually-hidden">Language</legend>
        {verificationSamples.map((sample, index) => (
          <label key={sample.name}>
            <input type="radio" name="verification" checked={index === selected} onChange={() => setSelected(index)} />
            {sample.name}
          </label>
        ))}
      </fieldset>
      <div className="code-sample">
        <TextBlock label={`Verification with ${name}`}>{text}</TextBlock>
        <CopyButton text={text} label={`the code with ${name}`} />
      </div>
      <MutedText>
        {note} During a rotation of the secret there are two signatures; one that verifies is enough. The same
        webhook-id may arrive twice: store it and ignore the second.
      </MutedText>
    </Card>
  )
}
