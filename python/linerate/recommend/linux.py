"""A POSIX shell script for Linux: saves the values that are there, sets new ones, shows both, and undoes.

Per setting the script has three functions, `read_NAME`, `write_NAME` and `restore_NAME`, with the text of its knob.
Everything is read and saved before anything is changed; after a refusal everything is put back.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from linerate.host import HostSetting, iscsi_record
from linerate.recommend.configuration import Configuration, RecommendedSetting
from linerate.recommend.form import FormText, checked_ports, evidence_lines, host_settings, not_of_hosts

_NO_RECORD = "open-iscsi has no record of it"
_PORT, _SAVED = '"$port"', "$saved"
_BEGIN = r"""set -eu
PORTS=${PORTS:-@PORTS@}
# Names of settings to leave out, with blanks between them
SKIP=${SKIP:-}
SAVED_FILE=${SAVED_FILE:-$0.saved}

# Use: sh FILE         saves the present values, sets new ones and shows both
#      sh FILE undo    puts the saved values back

"""
_END = r"""
SETTINGS="@SETTINGS@"
BACKWARDS="@BACKWARDS@"
OF_PORTS="@OF_PORTS@"

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# Whether a list has a word
has() {
    case " $1 " in *" $2 "*) return 0 ;; esac
    return 1
}

# The places of a setting: each port, or - for the whole host
places() {
    if has "$OF_PORTS" "$1"; then echo $PORTS; else echo -; fi
}

of() {
    if [ "$port" = - ]; then echo "$setting"; else echo "$setting of $port"; fi
}

save() {
    for setting in $SETTINGS; do
        has "$SKIP" "$setting" && continue
        for port in $(places "$setting"); do
            saved=$("read_$setting") || saved=
            [ -n "$saved" ] || fail "$(of): not on this host; nothing was changed. SKIP=$setting leaves it out."
            printf '%s %s %s\n' "$setting" "$port" "$saved"
        done
    done
}

apply() {
    if [ -n "$OF_PORTS" ] && [ -z "$PORTS" ]; then
        fail "Name the ports to the SAN in PORTS, at the top of this file, or PORTS='eth2 eth3' sh $0"
    fi
    [ ! -e "$SAVED_FILE" ] || fail "$SAVED_FILE exists: undo the earlier change first (sh $0 undo)."
    values=$(save) || exit 1
    [ -n "$values" ] || fail "SKIP leaves everything out, so there is nothing to set."
    printf '%s\n' "$values" > "$SAVED_FILE"
    trap 'echo "Stopped; putting everything back." >&2; undo; exit 130' INT TERM HUP
    while read -r setting port saved; do
        if ! "write_$setting" > /dev/null < /dev/null; then
            echo "$(of): refused by this host; putting everything back. SKIP=$setting leaves it out." >&2
            undo
            exit 1
        fi
    done < "$SAVED_FILE"
    trap - INT TERM HUP
    while read -r setting port saved; do
        echo "$(of): $("read_$setting") (was $saved)"
    done < "$SAVED_FILE"
    echo "To put it back: sh $0 undo"
}

# The last setting first, its ports in their order; what cannot be put back stays in the file
undo() {
    [ -e "$SAVED_FILE" ] || fail "$SAVED_FILE: there is no such file, so there is nothing to put back."
    : > "$SAVED_FILE.left"
    for last in $BACKWARDS; do
        while read -r setting port saved; do
            if [ "$setting" = "$last" ]; then put_back; fi
        done < "$SAVED_FILE"
    done
    if [ -s "$SAVED_FILE.left" ]; then
        mv "$SAVED_FILE.left" "$SAVED_FILE"
        exit 1
    fi
    rm "$SAVED_FILE" "$SAVED_FILE.left"
}

put_back() {
    now=$("read_$setting") || now=nothing
    [ "$now" != "$saved" ] || return 0
    "restore_$setting" > /dev/null < /dev/null || true
    now=$("read_$setting") || now=nothing
    if [ "$now" = "$saved" ]; then
        echo "$(of): back at $saved"
    else
        echo "$(of): is $now, not $saved again" >&2
        printf '%s %s %s\n' "$setting" "$port" "$saved" >> "$SAVED_FILE.left"
    fi
}

[ "$(id -u)" = 0 ] || fail "Only root may change these settings: sudo sh $0 $*"
case ${1:-apply} in
    apply) apply ;;
    undo) undo ;;
    *) fail "$1: write nothing, or undo" ;;
esac
"""


def linux_form(configuration: Configuration, ports: Sequence[str]) -> FormText:
    """The script. Without ports its variable PORTS is empty, and it asks for them before it changes anything."""
    missing = not_of_hosts(configuration)
    functions: list[str] = []
    taken: list[HostSetting] = []
    for one, setting in host_settings(configuration):
        if made := _functions(one, setting):
            functions += ["", *evidence_lines(one), *made]
            taken.append(setting)
        else:
            missing[one.name] = setting.absent or _NO_RECORD
    if not taken:
        return FormText([], missing)
    begin = _BEGIN.replace("@PORTS@", " ".join(checked_ports(ports)))
    names = [setting.name for setting in taken]
    end = _END.replace("@SETTINGS@", " ".join(names)).replace("@BACKWARDS@", " ".join(reversed(names)))
    end = end.replace("@OF_PORTS@", " ".join(setting.name for setting in taken if setting.scope == "port"))
    return FormText([*begin.splitlines(), *functions, *end.splitlines()], missing)


def _functions(one: RecommendedSetting, setting: HostSetting) -> list[str]:
    """The three functions of a setting; none where Linux has no way to set it."""
    if knob := setting.linux:
        texts = (
            knob.shell_read(_PORT),
            knob.shell_write(_PORT, one.value),
            knob.shell_restore(_PORT, _SAVED),
        )
    elif setting.where == "session" and (record := iscsi_record(setting, one.value)):
        texts = _record_texts(*record)
    else:
        return []
    lines: list[str] = []
    for verb, text in zip(("read", "write", "restore"), texts, strict=True):
        lines += [f"{verb}_{setting.name}() {{", *(f"    {line}" for line in text.splitlines()), "}"]
    return lines


def _record_texts(name: str, text: str) -> tuple[str, str, str]:
    """open-iscsi keeps a value for each portal of each target. The state has them all: TARGET|PORTAL|VALUE."""
    quoted = shlex.quote(name)
    update = f"-o update -n {quoted} -v"
    read = f"""iscsiadm -m node -o show | awk -v name={quoted} '
    $1 == "node.name" {{ target = $3 }}
    $1 == "node.conn[0].address" {{ portal = ($3 ~ /:/) ? "[" $3 "]" : $3 }}
    $1 == "node.conn[0].port" {{ port = $3 }}
    $1 == name {{ value = $3 }}
    /^# END RECORD/ {{ printf "%s|%s:%s|%s ", target, portal, port, value }}' | xargs"""
    restore = f"""for record in $saved; do
    target=${{record%%|*}} rest=${{record#*|}}
    iscsiadm -m node -T "$target" -p "${{rest%%|*}}" {update} "${{rest#*|}}" || return 1
done"""
    return read, f"iscsiadm -m node {update} {text}", restore
