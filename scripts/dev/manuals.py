#!/usr/bin/env python3
"""Makes man pages and the completion of bash, zsh and fish from what the programs say with --describe.

usage: scripts/dev/manuals.py --bin=build/bin --out=FOLDER [--changelog=scripts/packages/changelog]

FOLDER gets man1/, bash/, zsh/ and fish/. The build runs it; nothing of it is written by hand.
"""
import argparse
import email.utils
import gzip
import json
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ["hdps", "hdps-scheduler", "hdps-server", "hdps-worker"]
MAIN_HELP = "trains recommendation models on a parameter server"
# What stands in an example for the value of a flag, or for a placeholder of a usage; others stay as they are.
VALUES = {"job": "census.json", "out": "out/census", "checkpoint": "out/census", "scheduler": "tcp://10.0.0.5:8118",
          "servers": "2", "workers": "2", "FILE": "clicks.csv", "CHECKPOINT": "out/census", "OUT": "out/census",
          "CHECKPOINT_OR_OUT": "out/census", "hdps export --out": "out/model", "hdps generate --out": "out/clicks",
          "hdps keygen --out": "keys", "hdps trace --out": "out/steps.json"}
STATUSES = [("0", "It is done."), ("2", "The command, the job or its data is mistaken; the message names place, value and mend."),
            ("3", "The world failed: a disk, a network, another process.")]


def described(bin_folder):
    """The description of each command of hdps, and of each daemon."""
    found = []
    for program in PROGRAMS:
        done = subprocess.run([bin_folder / program, "--describe"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"manuals.py: error: {bin_folder / program} --describe: {done.stderr.strip()}")
        found += [json.loads(line) for line in done.stdout.splitlines()]
    return found


def page_name(program):
    return program.replace(" ", "-")


def parts_of(command):
    """The lines of usage, each whole, and the text that may follow them."""
    uses, rest = [], command["usage"].splitlines()
    while rest and (rest[0].startswith(" ") or rest[0].startswith(command["program"])):
        line = rest.pop(0)
        if line.strip().startswith(command["program"]):
            uses.append(line.strip())
        else:
            uses[-1] += "\n" + line
    return uses, " ".join(rest)


def example(command):
    """The first usage with values in the place of placeholders, and nothing that may be left out."""
    text, shorter = None, " ".join(parts_of(command)[0][0].split())
    while text != shorter:
        text, shorter = shorter, re.sub(r"\[[^\[\]]*\]", "", shorter)
    words = []
    for word in text.removeprefix(command["program"]).split():
        flag = re.fullmatch(r"--(\w+)=(.*)", word)
        if flag:
            name, value = flag.groups()
            value = VALUES.get(f"{command['program']} --{name}", VALUES.get(name, value.split("|")[0]))
            words.append(f"--{name}={value}")
        elif word != "...":
            words.append(VALUES.get(word.removesuffix("..."), word))
    return " ".join([command["program"], *words])


def roff(text):
    """Text as man(7) has it; a line cannot begin with what would be a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in text.splitlines())


def filled(text):
    """Running text in lines that are not too long, a sentence on a line of its own."""
    sentences = re.split(r"(?<=[a-z)\"][.?]) (?=[A-Z-])", " ".join(text.split()))
    return roff("\n".join(line for one in sentences for line in
                          textwrap.wrap(one, 72, break_long_words=False, break_on_hyphens=False)))


def sentence(text):
    """The text with a capital, unless it begins with the name of a command, and a full stop."""
    text = text.strip()
    first = text if re.match(r"[\w, ]+: ", text) else text[:1].upper() + text[1:]
    return first + ("" if text.endswith((".", "?")) else ".")


def options(flags):
    lines = [".SH OPTIONS"]
    for flag in flags:
        value = ""
        if flag["type"] != "bool":
            words = flag["takes"].split("|") if "|" in flag["takes"] else []
            value = "=" + ("|".join(f"\\fB{roff(word)}\\fR" for word in words) if words else
                           f"\\fI{flag['takes'] or ('text' if flag['type'] == 'string' else 'number')}\\fR")
        lines += [".TP", f"\\fB\\-\\-{flag['name']}\\fR{value}", filled(sentence(flag["help"]))]
        if flag["default"] not in ("", "false"):
            lines.append(f"Default: {roff(flag['default'])}.")
    return lines


def man_page(command, others, version, date):
    """One page: the example stands first."""
    name = page_name(command["program"])
    uses, text = parts_of(command)
    lines = [f".TH {name.upper()} 1 {date} \"hdps {version}\" \"hdps manual\"", ".SH NAME",
             f"{roff(name)} \\-\n{filled(command['help'])}", ".SH EXAMPLE", ".EX", roff(command["example"]), ".EE",
             ".SH SYNOPSIS", ".EX", roff("\n".join(uses)), ".EE"]
    if text:
        lines += [".SH DESCRIPTION", filled(text)]
    if "commands" in command:
        lines.append(".SH COMMANDS")
        for other in command["commands"]:
            lines += [".TP", f"\\fB{roff(other['program'])}\\fR", filled(sentence(other["help"]))]
    lines += options(command["flags"])
    lines += [".SH ENVIRONMENT", "A flag that is not given is taken from the environment:",
              "\\fB\\-\\-workers\\fR from HDPS_WORKERS."]
    lines.append(".SH EXIT STATUS")
    for status, meaning in STATUSES:
        lines += [".TP", status, filled(meaning)]
    lines.append(".SH SEE ALSO")
    seen = [f"\\fB{roff(other)}\\fR(1)" for other in others if other != name]
    lines += [one + "," for one in seen[:-1]] + seen[-1:]
    return "\n".join(lines) + "\n"


def main_command(commands):
    return {"program": "hdps", "help": MAIN_HELP, "commands": commands, "example": example(commands[0]),
            "usage": "hdps COMMAND [flags]\nhdps COMMAND --help",
            "flags": [flag for flag in commands[0]["flags"] if flag["name"] in ("help", "version")]}


def write_man(folder, commands, version, date):
    folder.mkdir(parents=True)
    own = [command for command in commands if command["program"].startswith("hdps ")]
    for command in [main_command(own), *commands]:
        others = ["hdps", *(page_name(other["program"]) for other in (own if command in own else commands))]
        page = man_page({"example": example(command), **command}, others, version, date)
        # The same bytes at every time.
        (folder / f"{page_name(command['program'])}.1.gz").write_bytes(gzip.compress(page.encode(), 9, mtime=0))


def flag_word(flag):
    return f"--{flag['name']}" + ("" if flag["type"] == "bool" else "=")


BASH = r"""# Completes the commands of hdps; made by scripts/dev/manuals.py.
_hdps()
{
    local cur prev words cword split command
    _init_completion -s || return
    command=${words[0]##*/}
    if [[ $command == hdps ]]; then
        if ((cword == 1)); then
            COMPREPLY=($(compgen -W "@COMMANDS@ help --version" -- "$cur"))
            return
        fi
        command+=" ${words[1]}"
    fi
    if [[ $prev == --* ]] && { $split || [[ $cur != -* ]]; }; then
        case "$command $prev" in
@VALUES@
        esac
        $split && return
    fi
    local flags= files=false
    case "$command" in
@FLAGS@
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
        [[ ${COMPREPLY-} == *= ]] && compopt -o nospace
    elif $files; then
        _filedir
    fi
    return 0
} && complete -F _hdps @PROGRAMS@
"""
BASH_TAKES = {"file": "_filedir; return", "folder": "_filedir -d; return"}


def bash(commands):
    by_takes = {}
    for command in commands:
        for flag in command["flags"]:
            if flag["type"] != "bool":
                by_takes.setdefault(flag["takes"], []).append(f"\"{command['program']} --{flag['name']}\"")
    values = []
    for takes, names in sorted(by_takes.items()):
        does = BASH_TAKES.get(takes, f"COMPREPLY=($(compgen -W \"{takes.replace('|', ' ')}\" -- \"$cur\")); return")
        values.append("            " + " |\\\n            ".join(names) + f")\n                {does} ;;" if takes else
                      "            " + " |\\\n            ".join(names) + ")\n                return ;;")
    flags = [f"        \"{command['program']}\")\n            flags=\"{' '.join(map(flag_word, command['flags']))}\" "
             f"files={str(command['arguments']).lower()} ;;" for command in commands]
    return (BASH.replace("@VALUES@", "\n".join(values)).replace("@FLAGS@", "\n".join(flags))
            .replace("@COMMANDS@", " ".join(names_of(commands))).replace("@PROGRAMS@", " ".join(PROGRAMS)))


def names_of(commands):
    return [c["program"].split()[1] for c in commands if " " in c["program"]]


def short(text):
    """The first part of a help, for the line beside a flag."""
    return re.split(r"(?<=[^ ])[.;:] |, (?=which|where|with)", " ".join(text.split()))[0].rstrip(".")


def single(text):
    return text.replace("'", "'\\''")


def zsh_spec(flag):
    text = re.sub(r"([\\\[\]:])", r"\\\1", short(flag["help"]))
    spec = f"{flag_word(flag)}[{text}]"
    if flag["type"] == "bool":
        return spec
    actions = {"file": "_files", "folder": "_files -/", "": " "}
    return spec + f":{flag['takes'] if '|' not in flag['takes'] else 'word'}:" + \
        actions.get(flag["takes"], f"({flag['takes'].replace('|', ' ')})")


def zsh(commands):
    lines = [f"#compdef {' '.join(PROGRAMS)}", "# Completes the commands of hdps; made by scripts/dev/manuals.py.",
             "local program=$service", "if [[ $program == hdps ]]; then", "  if (( CURRENT == 2 )); then",
             "    local -a commands=("]
    lines += [f"      '{command['program'].split()[1]}:{single(command['help'].replace(':', chr(92) + ':'))}'"
              for command in commands if " " in command["program"]]
    lines += ["    )", "    _describe command commands", "    return", "  fi", "  program=\"hdps $words[2]\"",
              "  shift words", "  (( CURRENT-- ))", "fi", "case $program in"]
    for command in commands:
        lines.append(f"  '{command['program']}') _arguments \\")
        lines += [f"    '{single(zsh_spec(flag))}' \\" for flag in command["flags"]]
        lines.append("    '*:file:_files' ;;" if command["arguments"] else "    && return ;;")
    return "\n".join([*lines, "esac"]) + "\n"


def fish(program, commands):
    lines = ["# Completes the commands of hdps; made by scripts/dev/manuals.py.", f"complete -c {program} -f"]
    for command in commands:
        where = ""
        if program == "hdps":
            name = command["program"].split()[1]
            lines.append(f"complete -c hdps -n __fish_use_subcommand -a {name} -d '{fish_text(command['help'])}'")
            where = f" -n '__fish_seen_subcommand_from {name}'"
        if command["arguments"]:
            lines.append(f"complete -c {program}{where} -F")
        for flag in command["flags"]:
            takes = {"file": " -rF", "folder": " -xa '(__fish_complete_directories)'", "": " -x"}.get(
                flag["takes"], f" -xa '{flag['takes'].replace('|', ' ')}'")
            value = "" if flag["type"] == "bool" else takes
            lines.append(f"complete -c {program}{where} -l {flag['name']}{value} -d '{fish_text(short(flag['help']))}'")
    return "\n".join(lines) + "\n"


def fish_text(text):
    return text.replace("\\", "\\\\").replace("'", "\\'")


def write_completion(out, commands):
    for shell in ("bash", "zsh", "fish"):
        (out / shell).mkdir()
    (out / "bash" / "hdps").write_text(bash(commands))
    for daemon in PROGRAMS[1:]:
        (out / "bash" / daemon).symlink_to("hdps")  # The shell looks for a file of the program's name.
    (out / "zsh" / "_hdps").write_text(zsh(commands))
    for program in PROGRAMS:
        own = [c for c in commands if c["program"] == program or c["program"].startswith(program + " ")]
        (out / "fish" / f"{program}.fish").write_text(fish(program, own))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="the folder of the programs")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder to write, which becomes new")
    parser.add_argument("--changelog", type=pathlib.Path, default=ROOT / "scripts" / "packages" / "changelog",
                        help="where version and date come from")
    arguments = parser.parse_args()
    changes = arguments.changelog.read_text()
    version = re.match(r"hdps \(([^)]+)\)", changes)[1]
    date = email.utils.parsedate_to_datetime(re.search(r"^ -- .*>  (.*)$", changes, re.M)[1]).date()
    commands = described(arguments.bin)
    for old in sorted(arguments.out.rglob("*"), reverse=True):
        old.unlink() if old.is_symlink() or not old.is_dir() else old.rmdir()
    write_man(arguments.out / "man1", commands, version, date)
    write_completion(arguments.out, commands)


if __name__ == "__main__":
    main()
