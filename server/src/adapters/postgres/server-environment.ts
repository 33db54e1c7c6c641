/** The only environment variables passed to the server: ours hold secrets, which its account could read. */
export const serverEnvironment: NodeJS.ProcessEnv = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
