# Holds the layers of one crate: which may import which, what a layer must not name, and no large circles of files.
#
#     awk -v source=src -f scripts/layers.awk scripts/layers src/..rs DESIGN.md
#
# The first file is the table of layers, the .rs files are the crate's sources and the last file is its DESIGN.md, which
# names the files of each circle of two or three that stays. Comments, tests (a `#[cfg(test)] mod .. {` at the end of a file, or
# the files of a `#[cfg(test)] mod ..;`) and modules outside the layers are not judged. Plain POSIX awk.

FNR == 1 { reading++; in_test = 0; statement = ""; cfg_test = 0; file = FILENAME; module = name_of(file) }

reading == 1 {
    if ($0 ~ /^#/ || NF == 0) next
    if ($1 == source && $2 == "-") {
        n = split($3, names, ","); for (i = 1; i <= n; i++) outside[names[i]] = 1
    } else if ($1 == source) {
        layer[$2] = 1
        n = split($3, names, ","); for (i = 1; i <= n; i++) if (names[i] != "-") may[$2, names[i]] = 1
        n = split($4, names, ","); for (i = 1; i <= n; i++) if (names[i] != "-") banned[$2, names[i]] = 1
        if ($4 != "-") bans[$2] = $4
    }
    next
}

FILENAME !~ /\.rs$/ { design = design $0 "\n"; next }

{
    sub(/\r$/, "")
    if (in_test) next
    code = $0
    sub(/^[ \t]*\/\/.*/, "", code); sub(/[ \t]\/\/.*/, "", code)
    gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
    if (code ~ /^[ \t]*#\[cfg\(.*test.*\)\]/) { cfg_test = 1; next }
    if (cfg_test && code ~ /^[ \t]*(pub(\(.*\))? )?mod [a-z_]+ *\{/) { in_test = 1; next }
    if (code ~ /^[ \t]*#\[/ || code ~ /^[ \t]*$/) next
    if (cfg_test && code ~ /^[ \t]*(pub(\(.*\))? )?mod [a-z_]+;/) {
        sub(/^.*mod /, "", code); sub(/;.*/, "", code)
        tests[module "::" code] = 1; cfg_test = 0
        next
    }
    cfg_test = 0
    if (code ~ /^[ \t]*(pub(\(.*\))? )?mod [a-z_]+;/) {
        sub(/^.*mod /, "", code); sub(/;.*/, "", code)
        children[module] = children[module] " " code
        next
    }
    if (statement != "" || code ~ /^[ \t]*(pub(\([a-z ]*[a-z:]*\))? )?use /) {
        if (statement == "") line = FNR
        statement = statement " " code
        if (code ~ /;/) { import(statement); statement = "" }
        next
    }
    line = FNR
    look(code)
}

END {
    for (f in modules) {
        known[modules[f]] = f
        if (!(layer_of(modules[f]) in layer) && !(layer_of(modules[f]) in outside)) complain(f ": in no layer of scripts/layers")
    }
    for (i = 1; i <= uses; i++) judge(i)
    for (i = 1; i <= mentions; i++) foreign(i)
    circles()
    exit wrong
}

function name_of(path,    name) {
    if (path !~ /\.rs$/) return ""
    name = substr(path, length(source) + 2)
    sub(/\.rs$/, "", name); gsub(/\//, "::", name)
    modules[path] = name
    return name
}

function layer_of(name) { sub(/::.*/, "", name); return name }

function complain(text) { print text; wrong = 1 }

# A whole `use` statement.
function import(text,    public) {
    public = text ~ /^[ \t]*pub/
    sub(/^[ \t]*(pub(\([a-z ]*[a-z:]*\))? )?use /, "", text); sub(/;.*/, "", text); gsub(/[ \t\n]/, "", text)
    sub(/^self::/, "", text)
    expand(text, public)
}

function expand(path, public,    open, depth, i, c, start, prefix) {
    open = index(path, "{")
    if (!open) { use(path, public); return }
    prefix = substr(path, 1, open - 1); depth = 0; start = open + 1
    for (i = open + 1; i <= length(path); i++) {
        c = substr(path, i, 1)
        if (c == "{") depth++
        if ((c == "," || c == "}") && depth == 0) {
            if (i > start) expand(prefix substr(path, start, i - start), public)
            start = i + 1
            if (c == "}") return
        }
        if (c == "}") depth--
    }
}

# Paths in running code.
function look(text,    path) {
    while (match(text, /(crate|super)(::[A-Za-z_][A-Za-z_0-9]*)+/)) {
        path = substr(text, RSTART, RLENGTH)
        if (RSTART == 1 || substr(text, RSTART - 1, 1) !~ /[A-Za-z0-9_$:]/) use(path, 0)
        text = substr(text, RSTART + RLENGTH)
    }
    body[module] = body[module] " " $0
    external($0)
}

function external(text,    rest) {
    rest = text
    while (match(rest, /[a-z_][a-z_0-9]*::/)) {
        if (RSTART == 1 || substr(rest, RSTART - 1, 1) !~ /[A-Za-z0-9_:]/) {
            mentions++; mentioned[mentions] = substr(rest, RSTART, RLENGTH - 2); mentioned_in[mentions] = file ":" FNR
            mentioned_by[mentions] = module
        }
        rest = substr(rest, RSTART + RLENGTH)
    }
}

function use(path, public,    at, up) {
    sub(/as[A-Z_][A-Za-z_]*$/, "", path)
    at = module; up = 0
    if (path ~ /^super::/) {
        while (sub(/^super::/, "", path)) { up++; if (!sub(/::[^:]*$/, "", at)) at = (at == "" ? "!" : "") }
        if (at == "!" || at == "") { complain(file ":" line ": `super` leads out of the layer: write `crate::`"); return }
        path = at "::" path
    } else if (path ~ /^crate::/) {
        sub(/^crate::/, "", path)
    } else {
        local_use(path, public)
        return
    }
    uses++; used[uses] = path; used_by[uses] = module; used_in[uses] = file ":" line; used_file[uses] = file
    if (public) reexport(path)
}

# A path that begins with a child module or with another crate.
function local_use(path, public,    first) {
    first = path; sub(/::.*/, "", first)
    if (index(children[module] " ", " " first " ")) {
        if (public) reexport(module == "lib" ? path : module "::" path)
        else { uses++; used[uses] = module "::" path; used_by[uses] = module; used_in[uses] = file ":" line }
        return
    }
    mentions++; mentioned[mentions] = first; mentioned_in[mentions] = file ":" line; mentioned_by[mentions] = module
}

function reexport(path,    last) {
    last = path; sub(/^.*::/, "", last)
    exported[module "::" last] = path
}

function is_test(name,    t) {
    for (t in tests) if (name == t || index(name, t "::") == 1) return 1
    return 0
}

function foreign(i,    by) {
    if (is_test(mentioned_by[i])) return
    by = layer_of(mentioned_by[i])
    if ((by, mentioned[i]) in banned) complain(mentioned_in[i] ": layer `" by "` must not name `" mentioned[i] "` (" bans[by] ")")
}

# The file that a path leads to.
function target(path,    hops) {
    for (hops = 0; hops < 9 && path in exported; hops++) path = exported[path]
    while (path != "" && !(path in known)) { if (!sub(/::[^:]*$/, "", path)) path = "" }
    return path
}

function judge(i,    by, to, path, from) {
    path = used[i]; from = used_by[i]; by = layer_of(from); to = layer_of(path)
    if (is_test(from)) return
    if (by in layer) {
        if (!(to in layer)) complain(used_in[i] ": `crate::" path "`: import it from its layer")
        else if (to != by && !((by, to) in may)) complain(used_in[i] ": layer `" by "` must not import `" to "`: `crate::" path "`")
    }
    path = target(path)
    if (path != "" && path != from) { edge[from, path] = 1; nodes[from] = 1; nodes[path] = 1 }
}

function circles(    a, b, c, n, m, size, members, seen, name) {
    for (a in nodes) for (b in nodes) if ((a, b) in edge) reach[a, b] = 1
    for (c in nodes) for (a in nodes) if ((a, c) in reach) for (b in nodes) if ((c, b) in reach) reach[a, b] = 1
    for (a in nodes) {
        if (a in seen) continue
        size = 1; members = short(a); missing = index(design, "`" short(a) "`") ? 0 : 1; seen[a] = 1
        for (b in nodes) if (b != a && ((a, b) in reach) && ((b, a) in reach)) {
            size++; members = members " <-> " short(b); seen[b] = 1
            if (!index(design, "`" short(b) "`")) missing = 1
        }
        if (size > 3) complain(source ": a circle of " size " files: " members)
        else if (size > 1 && missing) complain(source ": a circle of " size " files that DESIGN.md does not name: " members)
    }
}

function short(name) { gsub(/::/, "/", name); return name ".rs" }
