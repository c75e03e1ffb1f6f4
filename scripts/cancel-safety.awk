# Names each public function that returns a future and whose doc comment has no "# Cancel safety" heading.
#
#     awk -f scripts/cancel-safety.awk FILE.rs...
#
# Looked at: `pub async fn`, `pub fn` whose return type is a future (`impl`, `dyn` or boxed), and both without `pub`
# inside a `pub trait`. `pub(crate)` and its like are private. Reads code as rustfmt lays it out: one attribute or item
# begins a line, and the brace that closes a trait stands under the line that opened it. Plain POSIX awk: no intervals,
# no gawk functions.

FNR == 1 { documented = 0; comment = 0; attribute = 0; signature = ""; trait_end = "" }

{ sub(/\r$/, ""); text = $0; sub(/^[ \t]+/, "", text) }

comment {
    if (is_heading(text)) documented = 1
    if (text ~ /\*\//) comment = 0
    next
}

# A signature may go on over several lines; what it returns is known once its body, or its end, is reached.
signature != "" { extend(text); next }

text ~ /^\/\// { if (text ~ /^\/\/\// && is_heading(text)) documented = 1; next }
text ~ /^\/\*/ { comment = text !~ /\*\//; next }
text == "" { next }

attribute > 0 || text ~ /^#!?\[/ {
    if (text ~ /# Cancel safety/) documented = 1
    attribute += bracket_balance(text)
    next
}

trait_end != "" && $0 == trait_end { trait_end = "" }
text ~ /^pub (unsafe )?trait / && text !~ /[}]$/ { trait_end = substr($0, 1, length($0) - length(text)) "}" }

is_function(text) { first_line = FNR; extend(text); next }

{ documented = 0 }

END { exit found > 0 }

function is_heading(line) { return line ~ /^(\/\/\/|\*)?[ \t]*#+ Cancel safety[ \t]*$/ }

function is_function(line) {
    if (trait_end == "" && line !~ /^pub /) return 0
    return line ~ /^(pub )?((default|const|async|unsafe|extern|"[^"]*") )*fn /
}

function bracket_balance(line) {
    gsub(/"([^"\\]|\\.)*"/, "", line)
    return gsub(/\[/, "", line) - gsub(/\]/, "", line)
}

function extend(line,    end) {
    sub(/\/\/.*$/, "", line)
    signature = signature " " line
    end = signature_end(signature)
    if (!end) return
    judge(substr(signature, 1, end - 1))
    signature = ""
    documented = 0
}

# Position of the `{` or `;` that ends the signature, 0 while it is still open. `[u8; 4]` does not end it.
function signature_end(sig,    i, c, depth) {
    for (i = 1; i <= length(sig); i++) {
        c = substr(sig, i, 1)
        if (c == "(" || c == "[") depth++
        else if (c == ")" || c == "]") depth--
        else if ((c == "{" || c == ";") && depth == 0) return i
    }
    return 0
}

function judge(sig,    name) {
    if (documented || (sig !~ /^[^(]*async [^(]*fn / && !is_future(return_type(sig)))) return
    name = sig
    sub(/^.*[^A-Za-z0-9_]fn /, "", name)
    sub(/[^A-Za-z0-9_#].*$/, "", name)
    printf "%s:%d: `%s` returns a future; its docs need a \"# Cancel safety\" section\n", FILENAME, first_line, name
    found++
}

function is_future(type) {
    return type ~ /[^A-Za-z0-9_]((impl|dyn) (.*[^A-Za-z0-9_])?(Into)?Future|(Local)?BoxFuture)[^A-Za-z0-9_]/
}

# What stands between the argument list and `where`; arrows inside generics and arguments are somebody else's.
function return_type(sig,    i, c, angle, paren, rest) {
    gsub(/->/, "\001", sig)
    sub(/^.*[^A-Za-z0-9_]fn [A-Za-z0-9_#]+/, "", sig)
    for (i = 1; i <= length(sig); i++) {
        c = substr(sig, i, 1)
        if (c == "<" && !paren) angle++
        else if (c == ">" && !paren) angle--
        else if (c == "(" && !angle) paren++
        else if (c == ")" && !angle && --paren == 0) break
    }
    rest = substr(sig, i + 1) " "
    if (rest !~ /^ *\001/) return ""
    sub(/ where .*$/, " ", rest)
    return rest
}
