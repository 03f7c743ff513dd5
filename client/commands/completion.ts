import { Argument, Command } from "commander";

/** `completion`: what makes a shell complete commands and options. */
export function completionCommand(program: Command): Command {
  return new Command("completion")
    .description("print a completion script for your shell")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh"]))
    .addHelpText("after", '\nExample, in ~/.bashrc:\n  eval "$(tiltyard completion bash)"')
    .action((shell: string) => {
      process.stdout.write(
        `${shell === "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : ""}${bashScript(program)}`,
      );
    });
}

/** The words after each command, as a function that bash calls; zsh can call it too. */
function bashScript(program: Command): string {
  const cases = pathsOf(program, []).map(
    ([path, words]) => `    ${JSON.stringify(path)}) words=${JSON.stringify(words)} ;;`,
  );
  return `_tiltyard() {
  local path="" words="" word index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    [[ "$word" == -* ]] || path="\${path:+$path }$word"
  done
  case "$path" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [[ \${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _tiltyard tiltyard
`;
}

function pathsOf(command: Command, path: readonly string[]): [string, string][] {
  const words = [
    ...command.commands.map((each) => each.name()),
    ...command.options.map((each) => each.long ?? ""),
    "--help",
  ];
  return [
    [path.join(" "), words.filter(Boolean).join(" ")],
    ...command.commands.flatMap((each) => pathsOf(each, [...path, each.name()])),
  ];
}
