export type Settings = Record<string, string>

/** Constant: the folder of the socket tells two clusters apart, and nothing listens on the network. */
export const PORT = 5432

const DEFAULTS: Settings = {
  shared_buffers: '128MB',
  max_connections: '100',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  wal_buffers: '16MB',
  // Bounds how much has to be replayed after a crash, and with it how long the next start takes.
  max_wal_size: '1GB',
  checkpoint_timeout: '5min',
  jit: 'off',
  // One query, one core: a report must not take the machine from the runs. It also spares the 64 MB /dev/shm of containers.
  max_parallel_workers_per_gather: '0',
  // Nothing replicates from here, so the process that would look after it is spared.
  max_logical_replication_workers: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // An error's text, details and statement can hold what callers sent us. They go to the session that caused them, not to a file.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] ',
}

const NAME = /^[a-z][a-z0-9_]*(\.[a-z0-9_]+)?$/

type Fixed = { clusterName: string; socketFolder: string }

/** The last `-c` of a name wins: settings override the defaults, and nothing overrides where the server listens. */
export function toFlags(settings: Settings, { clusterName, socketFolder }: Fixed): string[] {
  const wrong = Object.keys(settings).find((name) => !NAME.test(name))
  if (wrong !== undefined) throw new Error(`'${wrong}' is not the name of a PostgreSQL setting.`)
  const fixed: Settings = {
    port: String(PORT),
    cluster_name: clusterName,
    listen_addresses: '',
    unix_socket_directories: socketFolder,
    logging_collector: 'off',
    log_destination: 'stderr',
  }
  const all = { ...DEFAULTS, ...settings, ...fixed }
  return Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}
