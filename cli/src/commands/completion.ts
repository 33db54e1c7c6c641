import { Argument, Command } from 'commander'

/** Words for each level of commands, from the commands themselves, so that the script cannot be out of date. */
export function completionCommand(program: Command): Command {
  return new Command('completion')
    .description('completion for a shell: eval "$(countersign completion bash)"')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .action((shell: 'bash' | 'zsh' | 'fish') => {
      const levels = [program, ...program.commands.filter(({ commands }) => commands.length > 0)]
      console.log(shell === 'fish' ? fish(levels) : bash(levels, shell))
    })
}

const wordsOf = (command: Command) => command.commands.map((child) => child.name())
const optionsOf = (command: Command) => command.options.map(({ long }) => long).filter(Boolean)

function bash([program, ...groups]: Command[], shell: 'bash' | 'zsh'): string {
  const leaves = program!.commands.map(
    (command) => `    ${command.name()}) words="${[...wordsOf(command), ...optionsOf(command)].join(' ')}" ;;`,
  )
  const nested = groups.flatMap((group) =>
    group.commands.map(
      (command) => `    "${group.name()} ${command.name()}") words="${optionsOf(command).join(' ')}" ;;`,
    ),
  )
  return [
    ...(shell === 'zsh' ? ['autoload -U +X bashcompinit && bashcompinit'] : []),
    '_countersign() {',
    `  local words="${wordsOf(program!).join(' ')} --help --version"`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
    '  if [ "$COMP_CWORD" -gt 2 ]; then case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in',
    ...nested,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
    '    *) case "${COMP_WORDS[1]}" in',
    ...leaves,
    '    esac ;;',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
    '  esac; elif [ "$COMP_CWORD" -eq 2 ]; then case "${COMP_WORDS[1]}" in',
    ...leaves,
    '  esac; fi',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of the shell
    '  COMPREPLY=($(compgen -f -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))',
    '}',
    'complete -F _countersign countersign',
  ].join('\n')
}

function fish([program, ...groups]: Command[]): string {
  const quoteText = (text: string) => `'${text.replaceAll("'", "\\'")}'`
  const line = (condition: string, command: Command) =>
    `complete -c countersign -n ${quoteText(condition)} -a ${command.name()} -d ${quoteText(command.description())}`
  return [
    ...program!.commands.map((command) => line('__fish_use_subcommand', command)),
    ...groups.flatMap((group) =>
      group.commands.map((command) => line(`__fish_seen_subcommand_from ${group.name()}`, command)),
    ),
  ].join('\n')
}
