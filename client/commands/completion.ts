import { Argument, Command } from "commander";

/** Creates the command `completion`, which prints a shell script that completes commands and options. */
export function completionCommand(program: Command): Command {
  return new Command("completion")
    .description("print a completion script for your shell")
    .addArgument(new Argument("<shell>").choices(["bash", "zsh", "fish"]))
    .addHelpText(
      "after",
      `
In ~/.bashrc or ~/.zshrc:             eval "$(tiltyard completion bash)" or zsh
In ~/.config/fish/config.fish:        tiltyard completion fish | source`,
    )
    .action((shell: string) => {
      process.stdout.write(scriptFor(shell, program));
    });
}

function scriptFor(shell: string, program: Command): string {
  if (shell === "fish") return fishScript(program);
  return `${shell === "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : ""}${bashScript(program)}`;
}

/** Returns a function for fish that prints the possible words after the current command. */
function fishScript(program: Command): string {
  const [[, first], ...others] = wordsAfter(program, []);
  const cases = others.map(
    ([path, words]) => `      case '${path}'\n        set path '${path}'\n        set words ${words}`,
  );
  return `function __tiltyard_words
  set -l path
  set -l words ${first}
  for word in (commandline -opc)[2..]
    switch (string trim -- "$path $word")
${cases.join("\n")}
    end
  end
  string join \\n -- $words
end
complete -c tiltyard -a '(__tiltyard_words)'
`;
}

/** Returns a function for bash that prints the possible words after the current command; zsh can call it too. */
function bashScript(program: Command): string {
  const [[, first], ...others] = wordsAfter(program, []);
  const cases = others.map(([path, words]) => `      "${path}") path="${path}" words="${words}" ;;`);
  return `_tiltyard() {
  local path="" words="${first}" index
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "\${path:+$path }\${COMP_WORDS[index]}" in
${cases.join("\n")}
    esac
  done
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
  [[ \${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _tiltyard tiltyard
`;
}

type Words = readonly [path: string, words: string];

/** Returns the words after a command, as its help lists them, and then those after each of its commands. */
function wordsAfter(command: Command, path: readonly string[]): readonly [Words, ...Words[]] {
  const help = command.createHelp();
  const commands = help.visibleCommands(command);
  const options = help.visibleOptions(command);
  const words = [...commands.map((each) => each.name()), ...options.map((each) => each.long ?? "")];
  return [
    [path.join(" "), words.filter(Boolean).join(" ")],
    ...commands.flatMap((each) => wordsAfter(each, [...path, each.name()])),
  ];
}
