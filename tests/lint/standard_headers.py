#!/usr/bin/env python3
"""Checks that a source includes the standard header of each standard name it uses, itself or through headers of ours.

usage: standard_headers.py ROOT

The precompiled headers hold most of the standard library, so a missing header is an error in the release build alone.
Names that are not in HEADERS are not judged.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
# For each header the names behind `std::` that need it; "a|b": either header will do.
HEADERS = {
    "algorithm": r"(?:min|max|clamp|minmax|sort|find|find_if|any_of|all_of|none_of|lower_bound|upper_bound|equal)\("
                 r"|ranges::(?:sort|stable_sort|find\w*|any_of|all_of|none_of|count\w*|copy\w*|move|transform|fill|for_each|contains"
                 r"|replace\w*|remove\w*|reverse|unique|equal|mismatch|search|min\w*|max\w*|lower_bound|upper_bound|equal_range"
                 r"|binary_search|includes|is_sorted|set_\w+|partition\w*|starts_with|ends_with|nth_element|shuffle|generate)\b",
    "any": r"any\b(?!_)",
    "array": r"array\b",
    "atomic": r"atomic\w*|memory_order\w*",
    "bit": r"bit_cast|popcount|count[lr]_\w+|bit_width|bit_ceil|has_single_bit|byteswap|endian\b|rot[lr]\(",
    "bitset": r"bitset\b",
    "charconv": r"(?:from|to)_chars\b",
    "chrono": r"chrono::",
    "cmath": r"(?:sqrt|pow|log(?:2|10|1p)?|exp|floor|ceil|l?l?round|fabs|isfinite|isnan)\(",
    "concepts": r"(?:same_as|convertible_to|derived_from|constructible_from|invocable|integral|unsigned_integral)\b",
    "condition_variable": r"condition_variable\w*",
    "coroutine": r"coroutine_handle|suspend_always|suspend_never",
    "cstdint": r"u?int(?:8|16|32|64|ptr|max|_fast\d+)_t\b",
    "cstdio": r"(?:sn?printf|printf|fopen|fputs|fwrite)\(|FILE\b",
    "cstdlib": r"(?:strto\w+|getenv|abort|_?[eE]xit)\(",
    "cstring": r"(?:mem(?:cpy|cmp|set|move|chr)|str(?:len|cmp|error))\(",
    "deque": r"deque\b",
    "exception": r"exception(?:_ptr)?\b|current_exception|rethrow_exception|make_exception_ptr|uncaught_exceptions",
    "expected": r"(?:un)?expected\b",
    "filesystem": r"filesystem::",
    "format": r"format(?:_to)?\(",
    "fstream": r"[io]?fstream\b",
    "functional": r"function\b|move_only_function\b|(?:hash|less|greater|equal_to)<|invoke\(|reference_wrapper|c?ref\(",
    "future": r"future\b|promise\b|async\(",
    "initializer_list": r"initializer_list\b",
    "iostream": r"(?:cout|cerr|cin)\b",
    "iterator": r"(?:back_)?inserter\(|make_move_iterator|[io]streambuf_iterator|(?:distance|next|prev|ssize)\(",
    "latch": r"latch\b",
    "limits": r"numeric_limits\b",
    "list": r"list\b",
    "map": r"(?:multi)?map\b",
    "memory": r"(?:unique|shared|weak)_ptr\b|make_(?:unique|shared)\b|enable_shared_from_this|addressof",
    "mutex": r"mutex\b|lock_guard|scoped_lock|unique_lock|once_flag|call_once",
    "numeric": r"(?:accumulate|iota|reduce|gcd|lcm|midpoint)\(",
    "optional": r"optional\b|nullopt\b",
    "queue": r"queue\b|priority_queue\b",
    "random": r"mt19937\w*|minstd_rand|random_device|\w+_distribution\b",
    "ranges": r"(?:ranges::)?views::|ranges::(?:to|subrange|\w*range|range_\w+_t|iota_view)\b",
    "regex": r"regex\b",
    "set": r"(?:multi)?set\b",
    "shared_mutex": r"shared_mutex|shared_lock",
    "source_location": r"source_location\b",
    "span": r"span\b",
    "sstream": r"[io]?stringstream\b",
    "stdexcept": r"(?:runtime|logic|range|length|domain|overflow)_error\b|invalid_argument\b|out_of_range\b",
    "stop_token": r"stop_(?:token|source)\b",
    "string": r"string\b|to_string\(|sto(?:i|u?ll?)\(|getline\(",
    "string_view|string": r"string_view\b",
    "system_error": r"error_code\b|system_error\b|(?:generic|system)_category|errc\b|error_category",
    "thread": r"j?thread\b|this_thread::",
    "tuple": r"tuple\b|tie\(|ignore\b|make_tuple",
    "type_traits": r"is_\w+_v\b|(?:conditional|decay|remove_\w+|enable_if|invoke_result|underlying_type|make_\w*signed|type_identity)_t\b",
    "typeindex": r"type_index\b",
    "unordered_map": r"unordered_(?:multi)?map\b",
    "unordered_set": r"unordered_(?:multi)?set\b",
    "utility": r"pair\b|exchange\(|cmp_\w+\(|in_range<|to_underlying|unreachable\(|in_place\b|as_const\(|piecewise_construct",
    "variant": r"variant\b|visit\(|monostate\b|holds_alternative|get_if",
    "vector": r"vector\b",
}
NAMES = [(re.compile(names), header.split("|")) for header, names in HEADERS.items()]
USE = re.compile(r"\bstd::([\w:]+[(<]?)")
INCLUDE = re.compile(r'^#include (?:<([\w./-]+)>|"([\w./-]+)")', re.M)
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')


def main() -> int:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--", "*.cpp", "*.hpp"], capture_output=True, text=True, check=True)
    texts = {name: (ROOT / name).read_text() for name in listed.stdout.splitlines()
             if not name.startswith("tests/lint/") and (ROOT / name).is_file()}
    standard: dict[str, set[str]] = {}

    def standard_headers(name: str) -> set[str]:
        """Those that `name` includes, itself or through headers of ours."""
        if name not in standard:
            standard[name] = found = set()
            for header, ours in INCLUDE.findall(texts[name]):
                if header:
                    found.add(header)
                for folder in ("libs", "apps", "tests") if ours else ():
                    if f"{folder}/{ours}" in texts:
                        found |= standard_headers(f"{folder}/{ours}")
        return standard[name]

    missing = []
    for name, text in texts.items():
        uses = sorted(set(USE.findall(COMMENT_OR_STRING.sub('""', RAW_STRING.sub('""', text)))))
        for names, headers in NAMES:
            use = next(filter(names.match, uses), None)
            if use and not standard_headers(name).intersection(headers):
                missing.append(f"{name}: std::{use.rstrip('(<')} needs #include <{headers[0]}>")
    print("\n".join(missing) if missing else f"{len(texts)} sources include the headers of {len(HEADERS)} of the standard library")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
