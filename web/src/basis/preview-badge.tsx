import { Badge } from '../components/ui.tsx'

export const PreviewBadge = ({ preview }: { preview: boolean }) =>
  preview ? <Badge tone="warning">preview: illustrative figures</Badge> : <Badge tone="success">live</Badge>
