import { useState } from 'react'
import { CopyButton } from '../components/copy-button.tsx'
import { Card, MutedText, TextBlock } from '../components/ui.tsx'
import { codeSamples, type SampleCall } from './code-samples.ts'

export function CodeSamplesCard({ call }: { call: SampleCall }) {
  const [selected, setSelected] = useState(0)
  const samples = codeSamples(call)
  const { name, text, note } = samples[selected]!
  return (
    <Card title="The same call from your code">
      <fieldset className="choices">
        <legend className="visually-hidden">Language</legend>
        {samples.map((sample, index) => (
          <label key={sample.name}>
            <input type="radio" name="sample" checked={index === selected} onChange={() => setSelected(index)} />
            {sample.name}
          </label>
        ))}
      </fieldset>
      <div className="code-sample">
        <TextBlock label={`The call with ${name}`}>{text}</TextBlock>
        <CopyButton text={text} label={`the call with ${name}`} />
      </div>
      <MutedText>{note}</MutedText>
    </Card>
  )
}
