/** All the server sees of our environment: it holds our secrets, and the server's account could read it there. */
export const serverEnvironment: NodeJS.ProcessEnv = { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
