#!/usr/bin/env python3
"""Draws docs/img/search-recall.svg: Recall@5 of the search strategies.

    cargo run --release -p gatewright-search --example eval -- SETS json=recall.json
    python3 scripts/plot_search.py recall.json [NAME=PERCENT ...] > docs/img/search-recall.svg

Further strategies (the semantic one, measured by `gatewright-embedding`'s example) are given as NAME=PERCENT.
"""
import html
import json
import sys

WIDTH, BAR, GAP, LEFT, TOP = 640, 28, 14, 190, 56


def main():
    bars = [(name, 100 * one["recallAt5"]) for name, one in json.load(open(sys.argv[1])).items()]
    bars += [(name, float(value)) for name, _, value in (extra.partition("=") for extra in sys.argv[2:])]
    bars.sort(key=lambda bar: bar[1])
    height = TOP + len(bars) * (BAR + GAP) + 34
    scale = (WIDTH - LEFT - 70) / 100
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" role="img" '
        'aria-label="Recall at five by search strategy">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="16" y="24" font-size="16" font-weight="600" fill="#1f2328">Is the right tool among the first five?</text>',
        '<text x="16" y="42" font-size="12" fill="#59636e">Recall@5, mean of four labelled sets, in percent</text>',
    ]
    for at, (name, value) in enumerate(bars):
        y = TOP + at * (BAR + GAP)
        ours = name.startswith(("tfidf", "embedding"))
        out.append(f'<text x="{LEFT - 10}" y="{y + 19}" font-size="13" text-anchor="end" fill="#1f2328">{html.escape(name)}</text>')
        out.append(f'<rect x="{LEFT}" y="{y}" width="{value * scale:.1f}" height="{BAR}" rx="3" fill="{"#2f6f9f" if ours else "#b6c2cd"}"/>')
        out.append(f'<text x="{LEFT + value * scale + 8:.1f}" y="{y + 19}" font-size="13" fill="#1f2328">{value:.1f}</text>')
    base = TOP + len(bars) * (BAR + GAP)
    for tick in range(0, 101, 25):
        x = LEFT + tick * scale
        out.append(f'<text x="{x:.1f}" y="{base + 14}" font-size="11" text-anchor="middle" fill="#59636e">{tick}</text>')
    out.append("</svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()
