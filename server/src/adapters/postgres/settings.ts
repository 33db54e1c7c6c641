export type Settings = Record<string, string>

/** Constant: clusters differ by socket folder, and nothing listens on the network. */
export const PORT = 5432

const DEFAULTS: Settings = {
  shared_buffers: '128MB',
  max_connections: '100',
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  wal_buffers: '16MB',
  // Bounds recovery after a crash, and with it the time of the next start.
  max_wal_size: '1GB',
  checkpoint_timeout: '5min',
  // A fifth of the usual sample: statistics of wide rows cost CPU, and no old row versions are removed while they are made.
  default_statistics_target: '20',
  jit: 'off',
  // One core per query: a report must not slow the runs down. It also saves the 64 MB /dev/shm of containers.
  max_parallel_workers_per_gather: '0',
  // Nothing replicates from this server, so it needs no launcher process for it.
  max_logical_replication_workers: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Error texts, details and statements can contain callers' data. They go to the session that caused them, not to a file.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_checkpoints: 'off',
  log_line_prefix: '%m [%p] ',
}

const NAME = /^[a-z][a-z0-9_]*(\.[a-z0-9_]+)?$/

type FixedSettings = { clusterName: string; socketFolder: string }

/** The last `-c` of a name wins: settings override the defaults, but not where the server listens. */
export function toFlags(settings: Settings, { clusterName, socketFolder }: FixedSettings): string[] {
  const invalidName = Object.keys(settings).find((name) => !NAME.test(name))
  if (invalidName !== undefined) throw new Error(`'${invalidName}' is not the name of a PostgreSQL setting.`)
  const fixed: Settings = {
    port: String(PORT),
    cluster_name: clusterName,
    listen_addresses: '',
    unix_socket_directories: socketFolder,
    logging_collector: 'off',
    log_destination: 'stderr',
  }
  const settingsByName = { ...DEFAULTS, ...settings, ...fixed }
  return Object.entries(settingsByName).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}
