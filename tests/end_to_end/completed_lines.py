"""Asks bash, zsh and fish how they complete lines, with the files of one folder (scripts/dev/manuals.py)."""
import re
import subprocess

BASH = r"""
source /usr/share/bash-completion/bash_completion
source "$1/bash/hdps"
compopt() { :; }  # The shell's own fails outside of a completion.
while IFS= read -r line; do
    IFS=$'\x1f' read -r -a COMP_WORDS <<<"${line#*$'\x1e'}"
    COMP_LINE=${line%%$'\x1e'*} COMP_POINT=${#COMP_LINE} COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    [[ $COMP_LINE == *" " ]] && COMP_WORDS+=("") && COMP_CWORD=$((COMP_CWORD + 1))
    _hdps "${COMP_WORDS[0]}"
    (IFS=$'\x1f'; printf '%s\n' "${COMPREPLY[*]}")
done
"""

# The shell in the terminal writes each match that it would offer into a file, and DONE on its screen.
ZSH_INSIDE = r"""
PROMPT= RPROMPT=
fpath=(FOLDER/zsh $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  typeset -a __hits
  builtin compadd -A __hits "$@"
  local -A pre suf
  local -a rest=("$@")
  zparseopts -E P:=pre S:=suf
  local hit
  for hit in $__hits; do print -r -- "$IPREFIX${pre[-P]}$hit${suf[-S]}" >>HITS; done
  builtin compadd "$@"
}
finish() { _main_complete "$@"; compstate[insert]= compstate[list]=; print DONE }
zle -C finish .complete-word finish
bindkey '^I' finish
print READY
"""
ZSH = r"""
zmodload zsh/zpty
export TERM=dumb
zpty shell zsh -f -i
zpty -w shell "source $1/inside.zsh"
zpty -r shell _ '*READY*'
while IFS= read -r line; do
  : >$1/hits
  zpty -w -n shell $'\C-u'"$line"$'\t'
  zpty -r shell _ '*DONE*' || exit 3
  print -r -- ${(pj:\x1f:)${(f)"$(<$1/hits)"}}
done
zpty -d shell
"""


def ask(command, text, **kwargs):
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, **kwargs)
    assert done.returncode == 0, done
    return done.stdout


def by_bash(folder, lines, scratch):
    def words(line):
        return re.findall(r"=|:|[^\s=:]+", line)  # As COMP_WORDBREAKS has it.

    text = "".join(f"{line}\x1e{chr(31).join(words(line))}\n" for line in lines)
    said = ask(["bash", "--norc", "-c", BASH, "bash", folder], text, cwd=scratch)
    return [set(filter(None, (one.strip() for one in line.split("\x1f")))) for line in said.splitlines()]


def by_zsh(folder, lines, scratch):
    (scratch / "inside.zsh").write_text(ZSH_INSIDE.replace("FOLDER", str(folder)).replace("HITS", str(scratch / "hits")))
    said = ask(["zsh", "-f", "-c", ZSH, "zsh", scratch], "\n".join(lines) + "\n", cwd=scratch)
    return [set(filter(None, line.split("\x1f"))) for line in said.splitlines()]


def by_fish(folder, lines, scratch):
    source = "for file in $argv[1]/fish/*.fish; source $file; end; " \
             "while read --line line; set found (complete -C $line | string split -f 1 \\t); " \
             "string join \\x1f -- $found; test (count $found) -gt 0; or echo; end"
    said = ask(["fish", "--no-config", "-c", source, str(folder)], "\n".join(lines) + "\n", cwd=scratch)
    return [set(filter(None, line.split("\x1f"))) for line in said.splitlines()]
