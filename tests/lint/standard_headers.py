#!/usr/bin/env python3
"""Checks that a source includes the header of each name of the precompiled headers that it uses, itself or through headers
of ours.

usage: standard_headers.py ROOT

A header that is missing is an error in the release build alone. Names that are neither in HEADERS nor in OTHERS are not
judged.
"""
import os
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
# The same for other names of the precompiled headers, which are looked for in the whole text.
OTHERS = {
    # What needs more than the declaration of json_fwd.hpp, in a file that has it.
    "nlohmann/json.hpp": r"\bJson>* \w+(?:;| = |\{)|\bJson[({]|\bJson::(?:parse|array|object)\(",
    "gmock/gmock.h": r"\b(?:EXPECT|ASSERT)_THAT\(",
    "gtest/gtest.h|gmock/gmock.h": r"\b(?:EXPECT|ASSERT)_(?!THAT)[A-Z_]+\(|\bTEST(?:_F|_P)?\(|\bADD_FAILURE|\bFAIL\(",
    "support/run_coro.hpp": r"\bCO_ASSERT_\w+\(|\brun_coro\(|\brun_in_test_time\(",
    "support/process.hpp": r"\brun_or_throw\(|\bTempDir\b",
}
OTHER_NAMES = [(re.compile(names, re.M), header.split("|")) for header, names in OTHERS.items()]
NAMES = [(re.compile(names), header.split("|")) for header, names in HEADERS.items()]
USE = re.compile(r"\bstd::([\w:]+[(<]?)")
INCLUDE = re.compile(r'^#include (?:<([\w./-]+)>|"([\w./-]+)")', re.M)
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.S)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"')


def main() -> int:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "--", "*.cpp", "*.hpp"], capture_output=True, text=True, check=True)
    texts = {name: (ROOT / name).read_text() for name in listed.stdout.splitlines()
             if not name.startswith("tests/lint/") and (ROOT / name).is_file()}
    included: dict[str, set[str]] = {}

    def headers_of(name: str) -> set[str]:
        """Those that `name` includes, itself or through headers of ours."""
        if name not in included:
            included[name] = found = set()
            for header, ours in INCLUDE.findall(texts[name]):
                found.add(header or ours)
                for folder in ("libs", "apps", "tests", "demo", pathlib.Path(name).parent) if ours else ():
                    path = os.path.normpath(f"{folder}/{ours}")
                    if path in texts:
                        found |= headers_of(path)
        return included[name]

    missing = []
    for name, text in texts.items():
        code = COMMENT_OR_STRING.sub('""', RAW_STRING.sub('""', text))
        uses = sorted(set(USE.findall(code)))
        for names, headers in NAMES:
            use = next(filter(names.match, uses), None)
            if use and not headers_of(name).intersection(headers):
                missing.append(f"{name}: std::{use.rstrip('(<')} needs #include <{headers[0]}>")
        for names, headers in OTHER_NAMES:
            other = names.search(code)
            if headers[0] == "nlohmann/json.hpp" and "nlohmann/json_fwd.hpp" not in headers_of(name):
                continue
            if other and name not in {f"tests/{h}" for h in headers} and not headers_of(name).intersection(headers):
                missing.append(f"{name}: {other[0].strip(' (;={')} needs {headers[0]}")
    print("\n".join(missing) if missing else f"{len(texts)} sources include the {len(HEADERS) + len(OTHERS)} headers that they need")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
