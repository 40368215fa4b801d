# SPDX-License-Identifier: MIT
#
# Our own rules over C files, one line a breach: "FILE:LINE: RULE: what is wrong". Two passes over the same files: the
# first (pass=1) learns our enums and which functions authorise their caller, the second checks.

BEGIN {
        split("ListGPUs GetGPU ListCliques ListPartitions", names)
        for (i in names) public[names[i]] = 1
}

function breach(rule, text) { printf "%s:%d: %s: %s\n", FILENAME, FNR, rule, text }

# The line without strings and comments.
function code_of(line) {
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        if (in_comment) {
                if (line !~ /\*\//) return ""
                sub(/^.*\*\//, "", line)
                in_comment = 0
        }
        while (match(line, /\/\*([^*]|\*[^\/])*\*\//))
                line = substr(line, 1, RSTART - 1) " " substr(line, RSTART + RLENGTH)
        if (line ~ /\/\*/) {
                sub(/\/\*.*$/, "", line)
                in_comment = 1
        }
        return line
}

FNR == 1 { in_comment = 0; as_written = 0; in_enum = 0; in_function = 0; depth = 0; n_switches = 0 }
{ code = code_of($0) }

pass == 1 {
        if (code ~ /typedef enum/) in_enum = 1
        if (in_enum && match(code, /^[ \t]+_?[A-Z][A-Z0-9_]*/)) {
                name = substr(code, RSTART, RLENGTH)
                gsub(/[ \t]/, "", name)
                our_enum[name] = 1
        }
        if (code ~ /^}/) in_enum = 0
        if (code ~ /^[A-Za-z].*[a-z0-9_]+\(/ && code !~ /;$/) {
                current = substr(code, 1, index(code, "(") - 1)
                sub(/^.*[ *]/, "", current)
                defined[FILENAME, current] = 1
                next
        }
        if (code ~ /^}/) current = ""
        while (current && match(code, /[a-z][a-z0-9_]+\(/)) {
                n_calls++
                call_file[n_calls] = FILENAME
                caller[n_calls] = current
                callee[n_calls] = substr(code, RSTART, RLENGTH - 1)
                code = substr(code, RSTART + RLENGTH)
        }
        next
}

FNR == 1 && $0 !~ /SPDX-License-Identifier: MIT/ { breach("spdx", "the first line must be the SPDX line") }
$0 ~ /(TODO|FIXME|HACK|(^|[^X])XXX([^X]|$))/ { breach("words", "unfinished work does not go in") }
code ~ /(^|[^a-z_])goto[ \t]/ { breach("goto", "a second way out is a missing cleanup type") }
code ~ /(^|[^:"])\/\// { breach("comments", "comments are /* */") }
# In unit tests functions of libc's may be replaced.
FILENAME !~ /^tests\/unit\// && code ~ /return -1;/ { breach("errno", "return a negative errno, never -1") }
code ~ /(^|[^a-z_])(sprintf|strcat|gets|system|popen|alloca|atoi|atol|strtok)\(/ {
        breach("functions", "this function has no place here")
}
FILENAME ~ /^agent\/(core|base|config)\// && code ~ /#include <(systemd\/|nvml|dbus)/ {
        breach("layers", "this layer knows no bus")
}
FILENAME ~ /layers\.c$|^agent\/core\// && code ~ /#include <(systemd\/|poll\.h|sys\/wait\.h)|(^|[^a-z_])(clock_gettime|usleep|sleep|nanosleep|time|now_read|now_monotonic_usec|now_realtime_usec)\(/ {
        breach("layers", "the core reads no clock, never sleeps and knows no bus")
}
FILENAME ~ /^cli\// && code ~ /#include "agent\/(core|driver)\// { breach("layers", "the client knows the API only") }
FILENAME ~ /^agent\/(base|config|core|driver|log|observers)\// && code ~ /#include "(dbus|cli)\// { breach("layers", "wrong direction") }
FILENAME ~ /^agent\/(base|core)\// && code ~ /#include "agent\/(driver|log|emulation)\// { breach("layers", "wrong direction") }

# A switch over one of our enums names all values, so that the compiler finds what a new one needs.
code ~ /(^|[^a-z_])switch \(/ { n_switches++; switch_depth[n_switches] = depth; ours[n_switches] = 0; default_line[n_switches] = characters[n_switches] = 0 }
n_switches && match(code, /case _?[A-Z][A-Z0-9_]*/) {
        if (substr(code, RSTART + 5, RLENGTH - 5) in our_enum) ours[n_switches] = 1
}
n_switches && code ~ /case '/ { characters[n_switches] = 1 } # of getopt_long()
n_switches && code ~ /(^|[ \t])default:/ { default_line[n_switches] = FNR }

# SD_BUS_VTABLE_UNPRIVILEGED (EVERYONE) stands only where the handler authorises its caller, by whatever functions, or
# the member is on the list of those that give public data.
!closed_over {
        closed_over = 1
        for (learnt = 1; learnt;) {
                learnt = 0
                for (i = 1; i <= n_calls; i++) {
                        if ((call_file[i], caller[i]) in authorises) continue
                        file = (call_file[i], callee[i]) in defined ? call_file[i] : ""
                        if (callee[i] ~ /^bus_authorize(_quietly)?$/ || (file ? (file, callee[i]) in authorises : callee[i] in anywhere)) {
                                authorises[call_file[i], caller[i]] = anywhere[caller[i]] = learnt = 1
                        }
                }
        }
}
match($0, /SD_BUS_METHOD[A-Z_]*\("[A-Za-z]+"/) {
        handler = ""
        member = substr($0, RSTART, RLENGTH - 1)
        sub(/^.*"/, "", member)
}
match(code, /method_[a-z_]+/) { handler = substr(code, RSTART, RLENGTH) }
code ~ /SD_BUS_VTABLE_UNPRIVILEGED|EVERYONE/ && handler && member {
        if (!((FILENAME, handler) in authorises) && !(member in public))
                breach("unprivileged", member " is open to all and " handler "() does not authorise")
        handler = member = ""
}

# Lengths: to be thought about, no failure.
code ~ /^[A-Za-z].*\)( __attribute__.*)? \{$/ { function_start = FNR; in_function = 1 }
code ~ /^}/ && in_function {
        if (FNR - function_start > 60) printf "%s:%d: long: a function of %d lines\n", FILENAME, function_start, FNR - function_start
        in_function = 0
}
{
        wide = $0
        gsub(/[\200-\277]/, "", wide) # the further bytes of a character
        if ($0 ~ /clang-format (off|on)/) as_written = $0 ~ /off/
        if (length(wide) > 109 && !as_written) breach("width", "more than 109 columns")
}
FNR == 601 { printf "%s:%d: long: a file of more than 600 lines\n", FILENAME, FNR }

{
        opened = gsub(/\{/, "{", code)
        closed = gsub(/\}/, "}", code)
        depth += opened - closed
        while (n_switches && depth <= switch_depth[n_switches]) {
                if (closed == 0 && opened == 0) break
                if (ours[n_switches] && default_line[n_switches] && !characters[n_switches])
                        printf "%s:%d: default: a switch over an enum of ours names all its values\n", FILENAME, default_line[n_switches]
                n_switches--
        }
}
