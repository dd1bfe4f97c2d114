#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares stock ab's report with corq ab's. Used by test_ab_same.sh; also by hand:

ab_compare.py reports FILE
    Rows of a table, from lines of fields that end in a tab: NAME N AB_TEXT AB_STATUS CORQ_TEXT
    CORQ_STATUS [FIELD=REASON...]. Both texts must have the same lines in the same order with the
    same words (numbers are masked), the same counts and exit status. FIELD=REASON allows a field
    to differ: one of FIELDS below, `status`, `report` (ab has none), `counts` (labels only), or
    `hang` (ab had to be killed). `Total body sent` may differ by N times the difference of the
    User-Agent lines, exactly.
ab_compare.py files N AB_CSV CORQ_CSV AB_TSV CORQ_TSV     the files of -e and -g
ab_compare.py requests FILE      both sent the same requests but for User-Agent (odd_server.py's file)

Exit status 1 when something differs that may not.
"""
import ast
import csv
import html.parser
import re
import sys
import time

FIELDS = ("Server Software", "Document Length", "Concurrency Level", "Complete requests", "Failed requests",
          "Connect", "Receive", "Length", "Exceptions", "Write errors", "Non-2xx responses",
          "Keep-Alive requests", "Total transferred", "Total body sent", "HTML transferred")
# Their presence depends on measured times.
DOUBTS = r"WARNING: The median|ERROR: The median|^ +These results|deviation apart"
KILLED = 128 + 9
AGENTS = (rb"User-Agent: ApacheBench/[\d.]+\r\n", rb"User-Agent: corq/[\w.]+\r\n")


class Table(html.parser.HTMLParser):
    """The rows of an HTML report: the tags with their attributes, and the text of the cells."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.shape, self.inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag in ("table", "tr", "td", "th"):
            self.shape.append((tag, attrs))
        if tag == "tr":
            self.rows.append([])
        self.inside = tag in ("td", "th")
        if self.inside:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


def block(text):
    """The lines of ab's block. Of a table: `label value`, as if they were text."""
    if "<table" in text:
        table = Table(text)
        return [" ".join(row) for row in table.rows] + [repr(tag) for tag in table.shape]
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith("Server Software:")), None)
    if begin is None:
        return []
    end = next((i for i, line in enumerate(lines) if line.startswith("model: ")), len(lines))
    lines = [line for line in lines[begin:end] if not re.search(DOUBTS, line)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def masked(lines):
    return [re.sub(r"\s+", " ", re.sub(r"-?\d+(\.\d+)?", "N", line)).strip() for line in lines]


def fields(lines):
    found = {}
    for line in lines:
        breakdown = re.search(r"\((Connect: .*)\)", line)
        if breakdown:
            for part in breakdown.group(1).split(", "):
                key, value = part.split(": ")
                found[key] = value
        key, _, value = line.partition(":")
        if key in FIELDS[:5] + FIELDS[9:]:
            found[key] = value.replace("bytes", "").strip()
    return found


def agent_difference(requests, ab_text, corq_text):
    version = re.search(r"corq ab, version ([\w.]+)", corq_text)
    return requests * (len("corq/" + version.group(1)) - len("ApacheBench/2.3")) if version else 0


def short(found, status):
    names = (("Complete requests", "done"), ("Failed requests", "failed"), ("Connect", "con"), ("Receive", "rcv"),
             ("Length", "len"), ("Exceptions", "exc"), ("Non-2xx responses", "non2xx"),
             ("Keep-Alive requests", "kept"), ("Total transferred", "read"), ("Total body sent", "sent"),
             ("HTML transferred", "html"))
    return " ".join([f"rc={status}"] + [f"{label}={found[name]}" for name, label in names
                                        if name in found and found[name] != ("0" if len(label) == 3 else None)])


def compare(name, requests, ab_file, ab_status, corq_file, corq_status, *allowances):
    texts = [open(f, encoding="latin-1").read() for f in (ab_file, corq_file)]
    allowed = dict(a.split("=", 1) for a in allowances)
    ab, corq = (block(text) for text in texts)
    have = [fields(ab), fields(corq)]
    differ = [f for f in FIELDS if have[0].get(f) != have[1].get(f)] if ab and "counts" not in allowed else []
    notes = []
    if "Total body sent" in differ:
        more = int(have[1].get("Total body sent", 0)) - int(have[0].get("Total body sent", 0))
        if more == agent_difference(int(requests), *texts):
            differ.remove("Total body sent")
            notes.append("User-Agent is shorter")
    if "hang" in allowed and ab_status == str(KILLED) and not ab:
        notes.append("allowed: " + allowed["hang"])
    else:
        differ += ["status"] if ab_status != corq_status else []
        differ += ["report"] if bool(ab) != bool(corq) else []
    # Lines that are there because of an allowed count (Non-2xx, the breakdown) go with it.
    gone = list(FIELDS[9:11]) if "counts" in allowed else [f for f in differ if f in allowed]
    skip = re.compile("|".join([re.escape(f) + ":" for f in gone] + ([r"\(Connect:"] if gone else []) or ["$^"]))
    words = [masked([line for line in lines if not skip.search(line)]) for lines in (ab, corq)]
    if ab and corq and words[0] != words[1]:
        differ.append("labels")
    wrong = [f for f in differ if f not in allowed]
    notes += [f"allowed: {allowed[f]}" for f in dict.fromkeys(differ) if f in allowed]
    verdict = "DIFFERENT: " + ", ".join(wrong) if wrong else "; ".join(dict.fromkeys(notes)) or "same"
    print(f"{name}\n    ab    {short(have[0], ab_status)}\n    corq  {short(have[1], corq_status)}\n    {verdict}")
    if "labels" in wrong:
        for pair in zip(words[0] + [""] * len(words[1]), words[1] + [""] * len(words[0])):
            if pair[0] != pair[1]:
                print(f"      ab '{pair[0]}', corq '{pair[1]}'")
                break
    return 1 if wrong else 0


def compare_all(name):
    with open(name, encoding="utf-8") as f:
        rows = [line.rstrip("\n").split("\t")[:-1] for line in f]
    wrong = sum(compare(*row) for row in rows)
    print(f"{len(rows)} option sets, {wrong} different")
    return 1 if wrong or not rows else 0


def read_csv(name):
    with open(name, newline="", encoding="ascii") as f:
        rows = list(csv.reader(f))
    return rows[0], [(int(percent), float(ms)) for percent, ms in rows[1:]]


def read_tsv(name):
    with open(name, newline="", encoding="ascii") as f:
        rows = list(csv.reader(f, delimiter="\t"))
    for row in rows[1:]:
        start = time.mktime(time.strptime(row[0], "%a %b %d %H:%M:%S %Y"))
        _, connect, processing, total, _ = (int(v) for v in row[1:])
        if abs(start - int(row[1])) > 3600 or abs(connect + processing - total) > 1:
            raise ValueError(f"{name}: {row}")
    if [int(row[4]) for row in rows[1:]] != sorted(int(row[4]) for row in rows[1:]):
        raise ValueError(f"{name} is not sorted by total time")
    return rows[0], rows[1:]


def compare_files(requests, ab_csv, corq_csv, ab_tsv, corq_tsv):
    (ab_head, ab_rows), (head, rows) = read_csv(ab_csv), read_csv(corq_csv)
    ok = ab_head == head and [r[0] for r in ab_rows] == [r[0] for r in rows] == list(range(101))
    ok = ok and [r[1] for r in rows] == sorted(r[1] for r in rows)
    print(f"-e  {len(ab_rows)} and {len(rows)} rows, columns {head}: {'same' if ok else 'DIFFERENT'}")
    (ab_head, ab_rows), (head, rows) = read_tsv(ab_tsv), read_tsv(corq_tsv)
    ok_tsv = ab_head == head and len(ab_rows) == len(rows) == int(requests)
    print(f"-g  {len(ab_rows)} and {len(rows)} rows, columns {head}: {'same' if ok_tsv else 'DIFFERENT'}")
    return 0 if ok and ok_tsv else 1


def compare_requests(name):
    sent = [set(), set()]
    with open(name, encoding="ascii") as f:
        for line in f:
            request = ast.literal_eval(line)
            for mine, agent in zip(sent, AGENTS):
                if re.search(agent, request):
                    mine.add(re.sub(agent, b"User-Agent\r\n", request))
    for who, only in (("ab", sent[0] - sent[1]), ("corq", sent[1] - sent[0])):
        for request in sorted(only):
            print(f"only {who} sent {request!r}")
    print(f"requests: {len(sent[0])} different ones of ab, {len(sent[1])} of corq")
    return 1 if sent[0] != sent[1] or not sent[0] else 0


def main(args):
    commands = {"reports": compare_all, "files": compare_files, "requests": compare_requests}
    if not args or args[0] not in commands:
        sys.exit(__doc__)
    return commands[args[0]](*args[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
