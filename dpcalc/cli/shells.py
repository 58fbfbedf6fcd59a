"""Completion scripts: the commands, options and words as a static table, so that no TAB starts an interpreter."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from dpcalc.cli.described import Described, Entry, Taken, by_option

_ORIGIN = "written by `dpcalc completions {shell}`: do not edit"

_BASH = """\
# bash completion for dpcalc, {origin}

_dpcalc() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} command= words= files= list= i
    # bash splits --option=value at the sign.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${{COMP_WORDS[i]}} != -* ]]; then
            command=${{COMP_WORDS[i]}}
            break
        fi
    done
    case $command,$prev in
        ,*) words={names} ;;
{values}
        *) case $command,$cur in
{commands}
        esac ;;
    esac
    if [[ $files ]]; then
        compopt -o filenames 2>/dev/null
        local IFS=$'\\n'
        COMPREPLY=($(compgen -d -- "$cur"; compgen -f -X "$files" -- "$cur"))
        return
    fi
    # Several values are separated by commas.
    if [[ $cur == *,* && $cur != -* ]]; then
        list=${{cur%,*}},
    fi
    COMPREPLY=($(compgen -P "$list" -W "$words" -- "${{cur#"$list"}}"))
    if [[ ${{COMPREPLY[0]}} == *= ]]; then
        compopt -o nospace 2>/dev/null
    fi
}}

complete -F _dpcalc dpcalc
"""


def bash(entries: Sequence[Entry]) -> str:
    """Return the script for bash."""
    names = shlex.quote(" ".join([*(entry.name for entry in entries), "--help", "--version"]))
    values = "\n".join(f"        {'|'.join(patterns)}) {do} ;;" for do, patterns in _bash_values(entries).items())
    commands = "\n".join(line for entry in entries for line in _bash_command(entry))
    return _BASH.format(origin=_ORIGIN.format(shell="bash"), names=names, values=values, commands=commands)


def _bash_values(entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Return what to do -> after which options, as patterns of command,option; the command is named if it matters."""
    options = [option for option in by_option(entries) if option.takes is not None]
    taken: dict[str, set[Taken]] = {}
    for option in options:
        for name in option.names:
            taken.setdefault(name, set()).add(option.takes or Taken())
    patterns_of: dict[str, list[str]] = {}
    for option, commands in by_option(entries).items():
        for name in option.names if option.takes else ():
            chosen = ["*"] if len(taken[name]) == 1 else commands
            patterns = patterns_of.setdefault(_bash_taken(option.takes or Taken()), [])
            patterns += [p for p in (f"{command},{name}" for command in chosen) if p not in patterns]
    return patterns_of


def _bash_command(entry: Entry) -> list[str]:
    flags = shlex.quote(" ".join(name for option in entry.options for name in option.names))
    arguments = [f"            {entry.name},*) {_bash_taken(entry.arguments[0][1])} ;;"] if entry.arguments else []
    return [f"            {entry.name},-*) words={flags} ;;", *arguments]


def _bash_taken(taken: Taken) -> str:
    if taken.file:
        return "files='!*.y*ml'" if taken.recipe else "files='!*'"
    return f"words={shlex.quote(' '.join(taken.words))}" if taken.words else ":"


_ZSH = """\
#compdef dpcalc
# zsh completion for dpcalc, {origin}

_dpcalc() {{
    local context state state_descr line curcontext=$curcontext
    local -a commands specs
    local -A opt_args
    commands=(
{names}
    )
    _arguments -C '(- *)'{{-h,--help}}'[show the help]' '(- *)--version[show the version]' \\
        '1:command:->command' '*::argument:->argument'
    case $state in
        command) _describe command commands ;;
        argument)
{options}
{arguments}
            _arguments -S $specs
            ;;
    esac
}}

_dpcalc "$@"
"""


def zsh(entries: Sequence[Entry]) -> str:
    """Return the script for zsh, a file ``_dpcalc`` on its ``fpath``."""
    names = "\n".join(f"        '{_zsh_text(entry.name)}:{_zsh_text(entry.line)}'" for entry in entries)
    options = "\n".join(_zsh_spec(c, _zsh_option(option)) for option, c in by_option(entries).items())
    arguments = "\n".join(
        _zsh_spec([entry.name], f"'*:{_zsh_text(metavar)}:{_zsh_taken(taken)}'")
        for entry in entries
        for metavar, taken in entry.arguments
    )
    return _ZSH.format(origin=_ORIGIN.format(shell="zsh"), names=names, options=options, arguments=arguments)


def _zsh_spec(commands: Sequence[str], spec: str) -> str:
    return f"            [[ $words[1] == ({'|'.join(commands)}) ]] && specs+=({spec})"


def _zsh_option(option: Described) -> str:
    names, what = list(option.names), f"[{_zsh_text(option.help)}]"
    if option.takes is not None:
        names = [name + ("=" if name.startswith("--") else "+") for name in names]
        what += f":{names[0].strip('-=')}:{_zsh_taken(option.takes)}"
    joined = "{" + ",".join(names) + "}" if len(names) > 1 else names[0]
    return f"'*'{joined}'{what}'"


def _zsh_taken(taken: Taken) -> str:
    if taken.file:
        return '_files -g "*.(yaml|yml)"' if taken.recipe else "_files"
    if taken.several:
        return f"_sequence compadd - {' '.join(taken.words)}"
    return f"({' '.join(taken.words)})" if taken.words else " "


def _zsh_text(text: str) -> str:
    for character in "\\[]:":
        text = text.replace(character, "\\" + character)
    return text.replace("'", "'\\''")


_FISH_LIST = (
    "# Print words that may follow those typed before the last comma.",
    "function __dpcalc_list",
    "    set -l typed (commandline -ct | string replace -r -- '^-[^=]*=' '' | string match -r -- '.*,')",
    "    printf '%s\\n' \"$typed\"$argv",
    "end",
)


def fish(entries: Sequence[Entry]) -> str:
    """Return the script for fish."""
    lines = [
        f"# fish completion for dpcalc, {_ORIGIN.format(shell='fish')}",
        "",
        *_FISH_LIST,
        "",
        "complete -c dpcalc -f",
    ]
    lines += ["complete -c dpcalc -n __fish_use_subcommand -s h -l help -d 'show the help'"]
    lines += ["complete -c dpcalc -n __fish_use_subcommand -l version -d 'show the version'"]
    for entry in entries:
        lines += [f"complete -c dpcalc -n __fish_use_subcommand -a {entry.name} -d {_fish_text(entry.line)}"]
        lines += [_fish_in([entry.name]) + _fish_taken(taken) for _, taken in entry.arguments if taken != Taken()]
    lines += [_fish_in(commands) + _fish_option(option) for option, commands in by_option(entries).items()]
    return "\n".join(lines) + "\n"


def _fish_in(commands: Sequence[str]) -> str:
    return f"complete -c dpcalc -n '__fish_seen_subcommand_from {' '.join(commands)}'"


def _fish_option(option: Described) -> str:
    names = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names)
    takes = "" if option.takes is None else (" -r" if option.takes.file else " -x") + _fish_taken(option.takes)
    return f"{names}{takes} -d {_fish_text(option.help)}"


def _fish_taken(taken: Taken) -> str:
    if taken.recipe:
        return " -a '(__fish_complete_suffix .yaml; __fish_complete_suffix .yml)'"
    if taken.file:
        return " -F"
    words = " ".join(taken.words)
    return f" -a {_fish_text(f'(__dpcalc_list {words})' if taken.several else words)}" if words else ""


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
