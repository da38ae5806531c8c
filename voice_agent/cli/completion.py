"""`voice-agent completion`: what bash, zsh and fish need to complete our commands, options and settings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voice_agent.cli.main import Commands

ABOUT = """\
Print a script that teaches your shell to complete commands, options, setting keys and file names. The script asks the
program itself at each Tab, so it stays right when the program changes.
"""
EXAMPLES = """\
examples:
  source <(voice-agent completion bash)                                   this shell; or add the line to ~/.bashrc
  voice-agent completion bash > ~/.local/share/bash-completion/completions/voice-agent
  source <(voice-agent completion zsh)                                    after compinit in ~/.zshrc
  voice-agent completion fish > ~/.config/fish/completions/voice-agent.fish

It completes the name voice-agent; with the program in a folder (.venv/bin/voice-agent) bash completes that, too.
"""

BASH = """\
# bash completion for voice-agent
_voice_agent() {
    local IFS=$'\\n' kind='' word='' help='' current='' output='' line=() at
    COMPREPLY=()
    # Bash makes words of their own of = and of what surrounds it; the program wants them whole.
    for ((at = 1; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if ((at > 1)) && [[ $word == = || ${COMP_WORDS[at - 1]} == = ]]; then
            [[ $word == = && ${#line[@]} -eq 0 ]] && line+=("")
            line[${#line[@]} - 1]+=$word
        else
            line+=("$word")
        fi
    done
    current=${line[${#line[@]} - 1]}
    output=$("$1" completion words -- "${line[@]}" 2>/dev/null) || return
    while IFS=$'\\t' read -r word help; do
        if [[ -z $kind ]]; then
            kind=$word
            continue
        fi
        # What stands before the last = is on the line already, as words of its own.
        [[ $current == *=* ]] && word=${word#"${current%"${current##*=}"}"}
        COMPREPLY+=("$word")
    done <<< "$output"
    if [[ $kind == files ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY+=($(compgen -f -- "${current##*=}"))
    fi
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -F _voice_agent voice-agent
"""

ZSH = """\
#compdef voice-agent
_voice_agent() {
    local kind='' word='' help=''
    local -a finished open
    while IFS=$'\\t' read -r word help; do
        if [[ -z $kind ]]; then
            kind=$word
        elif [[ $word == *= ]]; then
            open+=("${word//:/\\\\:}:$help")
        else
            finished+=("${word//:/\\\\:}:$help")
        fi
    done < <("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( $#finished )) && _describe voice-agent finished
    (( $#open )) && _describe voice-agent open -S ''
    [[ $kind == files ]] && _files
    return 0
}
compdef _voice_agent voice-agent
"""

FISH = """\
# fish completion for voice-agent
function __voice_agent_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] completion words -- $words[2..-1] 2>/dev/null)
    test (count $found) -gt 0; or return
    string join \\n -- $found[2..-1]
    if test "$found[1]" = files
        __fish_complete_path (commandline -ct)
    end
end
complete -c voice-agent -f -a '(__voice_agent_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def register(commands: Commands) -> None:
    parser = commands.add_parser(
        "completion", help="a script that completes our commands in your shell", description=ABOUT, epilog=EXAMPLES
    )
    shells = parser.add_subparsers(metavar="SHELL", required=True)
    for shell, script in SCRIPTS.items():
        one = shells.add_parser(shell, help=f"the script for {shell}", description=ABOUT, epilog=EXAMPLES)
        one.set_defaults(run=run, script=script, needs_settings=False)
    words = shells.add_parser(
        "words",
        description="What the scripts ask: completions of the last word, behind a line that says whether files fit.",
        epilog="examples:\n  voice-agent completion words -- serve --pro",
    )
    words.add_argument("words", nargs="*")
    words.set_defaults(run=run_words, needs_settings=False)


def run(args: argparse.Namespace) -> int:
    print(args.script, end="")
    return 0


def run_words(args: argparse.Namespace) -> int:
    from voice_agent.cli.completing import answer, complete
    from voice_agent.cli.main import build_parser

    print(answer(complete(build_parser(), args.words)))
    return 0
