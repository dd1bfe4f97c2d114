#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The page of 50 images for a browser, and the look at the browser's picture of it.

    page.py make DIRECTORY      writes index.html, style.css, check.js, images/NN.png
    page.py dom FILE            the page as the browser had it at the end: all 50 decoded, each with
                                its own size, said by check.js in the title
    page.py shot FILE           the browser's screenshot: in the middle of each tile the colour of
                                its image, and no colour of another one's

The images are noise around a square of one colour, so they do not compress: 0.5 to 280 KB,
each with a size and a colour of its own. Only the standard library is needed. Exit 1 with a line
when something is not as it should be. Called by tests/interop/programs.sh.
"""
import pathlib
import random
import re
import struct
import sys
import zlib

COUNT, COLUMNS, TILE_W, TILE_H = 50, 10, 80, 60
WIDTH, HEIGHT = COLUMNS * TILE_W, COUNT // COLUMNS * TILE_H


def size(i):
    return 16 + 8 * i, 12 + 6 * i


def colour(i):
    return 30 + i % 5 * 50, 30 + i // 5 % 5 * 50, 60 + i // 25 * 150


# ---- PNG

def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, rows):
    """rows: bytes of RGB, one a line."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def unfilter(kind, row, above, step):
    for x in range(len(row)):
        left = row[x - step] if x >= step else 0
        corner = above[x - step] if x >= step else 0
        row[x] = (row[x] + (0, left, above[x], (left + above[x]) // 2,
                            paeth(left, above[x], corner))[kind]) & 255
    return row


def read_png(path):
    """(width, height, bytes a pixel, rows) of an 8-bit RGB or RGBA image, as browsers write."""
    data = pathlib.Path(path).read_bytes()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        sys.exit(f"{path}: no PNG")
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, form, _, _, interlaced = struct.unpack(">IIBBBBB", body)
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    if depth != 8 or form not in (2, 6) or interlaced:
        sys.exit(f"{path}: a form of PNG that this reader does not know")
    step = 3 if form == 2 else 4
    raw, line, rows = zlib.decompress(packed), width * step, []
    above = bytes(line)
    for y in range(height):
        start = y * (line + 1)
        above = unfilter(raw[start], bytearray(raw[start + 1:start + 1 + line]), above, step)
        rows.append(above)
    return width, height, step, rows


# ---- the page

def image(i):
    width, height = size(i)
    noise = random.Random(i)
    left, right = width // 4, width - width // 4
    rows = []
    for y in range(height):
        row = bytearray(noise.randbytes(3 * width))
        if height // 4 <= y < height - height // 4:
            row[3 * left:3 * right] = bytes(colour(i)) * (right - left)
        rows.append(row)
    return png(width, height, rows)


STYLE = f"""body {{ margin: 0; background: #fff; }}
img {{ position: absolute; width: {TILE_W}px; height: {TILE_H}px; }}
"""

SCRIPT = """addEventListener("load", () => {
	const images = [...document.images];
	const right = images.filter(i => i.complete && i.naturalWidth == i.dataset.w &&
		i.naturalHeight == i.dataset.h);
	document.title = right.length + " of " + images.length + " images are right";
});
"""


def make(directory):
    top = pathlib.Path(directory)
    (top / "images").mkdir(parents=True, exist_ok=True)
    tags = []
    for i in range(COUNT):
        name = f"images/{i:02}.png"
        (top / name).write_bytes(image(i))
        x, y = i % COLUMNS * TILE_W, i // COLUMNS * TILE_H
        tags.append(f'<img src="{name}" data-w="{size(i)[0]}" data-h="{size(i)[1]}" '
                    f'style="left: {x}px; top: {y}px" alt="">')
    (top / "style.css").write_text(STYLE)
    (top / "check.js").write_text(SCRIPT)
    (top / "index.html").write_text(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>not loaded</title>\n'
        '<link rel="icon" href="images/00.png"><link rel="stylesheet" href="style.css">\n'
        '<script src="check.js"></script></head><body>\n' + "\n".join(tags) + "\n</body></html>\n")


# ---- what the browser made of it

def check_dom(path):
    text = pathlib.Path(path).read_text(encoding="utf-8")
    title = re.search(r"<title>(.*?)</title>", text)
    found = title.group(1) if title else "no title"
    print(f"the browser: {found}")
    return found == f"{COUNT} of {COUNT} images are right"


def check_shot(path):
    width, height, step, rows = read_png(path)
    if (width, height) != (WIDTH, HEIGHT):
        sys.exit(f"{path}: {width} x {height}, not {WIDTH} x {HEIGHT}")
    wrong = []
    for i in range(COUNT):
        x, y = i % COLUMNS * TILE_W + TILE_W // 2, i // COLUMNS * TILE_H + TILE_H // 2
        seen = rows[y][x * step:x * step + 3]
        if any(abs(a - b) > 3 for a, b in zip(seen, colour(i))):
            wrong.append(f"image {i}: {tuple(seen)}, not {colour(i)}")
    print(f"the screenshot: {COUNT - len(wrong)} of {COUNT} tiles have their image's colour")
    for line in wrong:
        print(line)
    return not wrong


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("make", "dom", "shot"):
        sys.exit("usage: page.py make DIRECTORY | dom FILE | shot FILE")
    if sys.argv[1] == "make":
        make(sys.argv[2])
        return 0
    check = check_dom if sys.argv[1] == "dom" else check_shot
    return 0 if check(sys.argv[2]) else 1


if __name__ == "__main__":
    sys.exit(main())
