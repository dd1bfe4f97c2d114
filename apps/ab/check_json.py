#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what --json of `corq ab`, `httpd`, `opensock` or `closetest` wrote against its schema.json, and that it adds up.

  check_json.py SCHEMA FILE           checks a file
  check_json.py SCHEMA --run COMMAND  runs COMMAND (which prints the JSON) and checks that
  check_json.py SCHEMA --self         shows that the checker itself can say no

The keywords that schema.json uses are implemented here, so that no package is needed; a keyword
that is not known is an error, not a pass.
"""
import json
import subprocess
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
SILENT = {"$schema", "title", "description"}
OF_OBJECTS = {"required", "properties", "additionalProperties"}  # where null is allowed, they say nothing of it


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def check(value, schema, where, errors):
    for key, want in schema.items():
        if key in SILENT or (value is None and key in OF_OBJECTS):
            continue
        if key == "type":
            names = want if isinstance(want, list) else [want]
            if not any(is_type(value, n) for n in names):
                errors.append(f"{where}: {value!r} is not {' or '.join(names)}")
                return
        elif key == "const":
            if value != want:
                errors.append(f"{where}: {value!r} is not {want!r}")
        elif key == "enum":
            if value not in want:
                errors.append(f"{where}: {value!r} is none of {want}")
        elif key == "minimum":
            if value is not None and value < want:
                errors.append(f"{where}: {value!r} is below {want}")
        elif key == "required":
            errors.extend(f"{where}: '{k}' is missing" for k in want if k not in value)
        elif key == "properties":
            for k, sub in want.items():
                if k in value:
                    check(value[k], sub, f"{where}.{k}", errors)
        elif key == "additionalProperties":
            if want is False:
                errors.extend(f"{where}: '{k}' is not in the schema"
                              for k in value if k not in schema.get("properties", {}))
            else:
                for k in value:
                    if k not in schema.get("properties", {}):
                        check(value[k], want, f"{where}.{k}", errors)
        elif key == "items":
            for i, v in enumerate(value):
                check(v, want, f"{where}[{i}]", errors)
        else:
            errors.append(f"{where}: the checker does not know '{key}'")


def server_sums(o, errors):
    parts = ("ok", "redirects", "client_errors", "server_errors")
    if o["requests"] != sum(o[p] for p in parts):
        errors.append("requests is not the sum of its kinds")
    if o["cut_short"] > o["requests"]:
        errors.append("more responses cut short than requests answered")


def histogram_counts(o, errors):
    r, c = o["requests"], o["connections"]
    n = {name: lat["count"] for name, lat in o["latency_us"].items()}
    if n["connect"] != c["established"]:
        errors.append("latency_us: connect.count is not connections.established")
    if n["total"] != r["complete"]:
        errors.append("latency_us: total.count is not requests.complete")
    if not n["last_byte"] <= n["first_byte"] <= r["started"]:
        errors.append("latency_us: not last_byte.count <= first_byte.count <= requests.started")
    if n["last_byte"] + r["failed"] + r["cut_short"] + r["garbage"] < r["complete"]:
        errors.append("latency_us: complete requests without a last byte")
    if n["close"] > c["closed"]:
        errors.append("latency_us: close.count is above connections.closed")


def opensock_side(name, side, errors):
    if side is None:
        return
    if side["opened"] != side["closed"]:
        errors.append(f"{name}: opened is not closed")
    if side["opened"] < side["total"] + side["count"]:
        errors.append(f"{name}: fewer opened than count + total")
    if side["count"] > side["count_asked"] or side["crossed"] > side["total"]:
        errors.append(f"{name}: count above count_asked, or crossed above total")
    if abs(side["ops_per_second"] * side["seconds"] - side["total"]) > 1e-6 * side["total"] + 1:
        errors.append(f"{name}: ops_per_second is not total / seconds")
    cycles = [side["cycles"][k] for k in ("p50", "p90", "p99", "p999")]
    if None not in cycles and cycles != sorted(cycles):
        errors.append(f"{name}: percentiles do not rise: {cycles}")


def opensock_sums(o, errors):
    for name in ("corq", "kernel"):
        opensock_side(name, o[name], errors)
    both = o["corq"] is not None and o["kernel"] is not None
    if both != (o["ratio"] is not None):
        errors.append("ratio without two backends, or two without a ratio")
    elif both and abs(o["ratio"] * o["kernel"]["ops_per_second"] / o["corq"]["ops_per_second"] - 1) > 1e-6:
        errors.append("ratio is not corq's by the kernel's ops_per_second")
    h = o["handles"]
    if (h is None) != (o["corq"] is None):
        errors.append("handles go with corq")
    if h is not None and (h["open_filled"], h["open_after_loop"]) != (o["corq"]["count"],) * 2:
        errors.append("handles: open before and after the loop is not count")
    if h is not None and any(v for k, v in h.items() if k.endswith(("_at_end", "_detached"))):
        errors.append("handles: something is left at the end")
    if not o["adds_up"]:
        errors.append("adds_up is false")


def closetest_stage(o, s, errors):
    name = f"{s['part']} {s['close']} {s['round']}"
    failed, tw, c = s["failed"], s["time_wait"], s["connect_us"]
    if s["connections"] != s["good"] + sum(failed.values()):
        errors.append(f"{name}: connections is not good + failed")
    if (s["first_no_port"] is None) != (failed["no_port"] == 0):
        errors.append(f"{name}: first_no_port without failed.no_port, or the reverse")
    if not s["good"] <= c["count"] <= s["connections"] or s["reset_after_open"] > s["good"]:
        errors.append(f"{name}: connect_us.count, good and reset_after_open do not go together")
    if tw["peak"] < tw["now"] or tw["peak_bytes"] != tw["peak"] * (o["record_bytes"] + o["table_bytes"]):
        errors.append(f"{name}: time_wait: peak below now, or not peak_bytes")
    times = [c[k] for k in ("p50", "p99", "p999", "max")]
    if (None in times) != (c["count"] == 0) or (None not in times and times != sorted(times)):
        errors.append(f"{name}: connect_us does not rise: {times}")
    refused = s["ports"]["refused"]
    if refused is not None and refused != failed["no_port"]:
        errors.append(f"{name}: ports.refused is not failed.no_port")


def closetest_sums(o, errors):
    for s in o["stages"]:
        closetest_stage(o, s, errors)
    if o["error"] is None and any(sum(s["failed"].values()) for s in o["stages"]):
        errors.append("connections failed, and no error says so")


def sums(o, errors):
    r, c = o["requests"], o["connections"]
    if r["started"] != r["complete"] + r["aborted"] + r["outstanding"]:
        errors.append("requests: started is not complete + aborted + outstanding")
    if c["opened"] != c["closed"] + c["live"]:
        errors.append("connections: opened is not closed + live")
    parts = ("failed_connect", "failed_receive", "failed_length", "failed_exceptions")
    if r["failed"] != sum(r[p] for p in parts):
        errors.append("requests: failed is not the sum of its kinds")
    if r["failed"] > 2 * r["complete"]:  # a reset counts twice, as in ab
        errors.append("requests: more failures than complete requests can have")
    if c["live"] > c["peak"]:
        errors.append("connections: more live than the peak")
    if c["established"] > c["opened"]:
        errors.append("connections: more established than opened")
    t = o["tcp"]
    if t["retransmits"] != sum(t[k + "_retransmits"] for k in ("syn", "data", "fin")):
        errors.append("tcp: retransmits is not the sum of its kinds")
    histogram_counts(o, errors)
    for name, lat in o["latency_us"].items():
        order = [lat[k] for k in ("min", "p50", "p90", "p99", "p999", "p9999", "max")]
        if None in order:
            if any(v is not None for v in order) or lat["mean"] is not None or lat["count"] != 0:
                errors.append(f"latency_us.{name}: some figures are null, some not")
        elif order != sorted(order):
            errors.append(f"latency_us.{name}: percentiles do not rise: {order}")
        elif lat["count"] == 0 or not lat["min"] <= lat["mean"] <= lat["max"]:
            errors.append(f"latency_us.{name}: mean {lat['mean']} or count {lat['count']}")


def problems(o, schema):
    errors = []
    check(o, schema, "$", errors)
    if not errors:
        {"corq-httpd/1": server_sums, "corq-opensock/1": opensock_sums,
         "corq-closetest/1": closetest_sums}.get(o["schema"], sums)(o, errors)
    return errors


def self_test():
    schema = {"type": "object", "required": ["a"], "additionalProperties": False,
              "properties": {"a": {"type": ["integer", "null"], "minimum": 0},
                             "m": {"type": "object", "additionalProperties": {"type": "integer"}},
                             "b": {"enum": ["x"]}, "c": {"type": "array", "items": {"type": "string"}}}}
    good = [{"a": 1}, {"a": None, "b": "x", "c": ["s"]}, {"a": 1, "m": {"any": 1}}]
    bad = [{}, {"a": -1}, {"a": "1"}, {"a": True}, {"a": 1, "b": "y"}, {"a": 1, "d": 0},
           {"a": 1, "c": [1]}, {"a": 1, "m": {"any": "x"}}, []]
    for o, wrong in [(o, False) for o in good] + [(o, True) for o in bad]:
        errors = []
        check(o, schema, "$", errors)
        if bool(errors) != wrong:
            sys.exit(f"check_json: {o} gave {errors}")
    errors = []
    check(1, {"maximum": 2}, "$", errors)
    if not errors:
        sys.exit("check_json: an unknown keyword passed")


def usage():
    lines = [line.strip() for line in __doc__.splitlines() if line.startswith("  check_json.py")]
    print("usage: " + "\n       ".join(lines), file=sys.stderr)
    sys.exit(2)


def read(name):
    try:
        with open(name, "rb") as f:
            return f.read()
    except OSError as e:
        sys.exit(f"check_json: {name}: {e.strerror}")


def parse(name, text):
    try:
        return json.loads(text)
    except ValueError as e:
        sys.exit(f"check_json: {name}: no JSON: {e}")


def main():
    options = [a for a in sys.argv[1:3] if a.startswith("-")]
    if len(sys.argv) < 3 or options not in ([], ["--run"], ["--self"]) \
            or (options == ["--run"]) != (len(sys.argv) > 3):
        usage()
    schema = parse(sys.argv[1], read(sys.argv[1]))
    if sys.argv[2] == "--self":
        self_test()
        return
    if sys.argv[2] == "--run":
        done = subprocess.run(sys.argv[3:], stdout=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit(f"check_json: {' '.join(sys.argv[3:])} ended with {done.returncode}")
        text = done.stdout
    else:
        text = read(sys.argv[2])
    errors = problems(parse(sys.argv[2], text), schema)
    for e in errors:
        print(f"check_json: {e}", file=sys.stderr)
    if errors:
        sys.exit(1)
    print("check_json: ok")


main()
