#!/usr/bin/env python3
"""Learns the order of hits (`RankWeights`) from labelled sets, each set left out in turn.

    cargo run --release -p gatewright-search --example eval -- SETS dump=1 > rows.tsv
    python3 scripts/train_search.py rows.tsv          # needs numpy

A row is: set, query, number of relevant documents, label, features. The model is linear; the loss is the
cross-entropy of a softmax over a query's candidates, every set weighing the same, drawn towards the
unlearned ranking. Prints Recall@5 and nDCG@10 of the set left out, then the weights learned from all.
"""
import sys

import numpy as np

# Columns of a row behind its label: what the order is made of, as `Features::row` in crates/search/src/features.rs writes it.
WEIGHTS = ["share", "matched", "description", "app", "name_pairs", "description_pairs", "clause", "relative"]
PRIOR, PULL, STEPS, RATE = 25.0, 0.003, 150, 0.1


def load(path):
    rows = [line.rstrip("\n").split("\t") for line in open(path)]
    names = sorted({row[0] for row in rows})
    sets = np.array([names.index(row[0]) for row in rows])
    head = np.array([[int(row[1]), int(row[2]), int(row[3])] for row in rows])
    return names, sets, head[:, 0], head[:, 1], head[:, 2], np.array([row[4:4 + len(WEIGHTS)] for row in rows], dtype=np.float32)


def main():
    names, sets, query, relevant, label, x = load(sys.argv[1])
    first = np.flatnonzero(np.r_[True, (np.diff(query) != 0) | (np.diff(sets) != 0)])
    group = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(query)]))
    group_set, group_relevant = sets[first], relevant[first]
    found = np.add.reduceat(label, first)
    ideal = np.cumsum(1 / np.log2(np.arange(10) + 2))

    def measure(scores):
        order = np.lexsort((-scores, group))
        rank = np.empty(len(scores), int)
        rank[order] = np.arange(len(scores)) - np.repeat(first, np.diff(np.r_[first, len(scores)]))
        recall = np.bincount(group, label * (rank < 5)) / group_relevant
        gain = np.bincount(group, np.where(rank < 10, label / np.log2(rank + 2), 0))
        ndcg = gain / ideal[np.minimum(group_relevant, 10) - 1]
        return np.array([[100 * recall[group_set == s].mean(), 100 * ndcg[group_set == s].mean()]
                         for s in range(len(names))])

    def fit(train):
        use = (np.isin(group_set, train) & (found > 0))[group]
        features, labels, groups = x[use], label[use].astype(np.float32), group[use]
        start = np.flatnonzero(np.r_[True, np.diff(groups) != 0])
        of = np.repeat(np.arange(len(start)), np.diff(np.r_[start, len(groups)]))
        size = np.bincount(group_set[groups[start]], minlength=len(names))
        weight = (1 / size[group_set[groups[start]]] / len(train))[of]
        target = labels / np.add.reduceat(labels, start)[of]
        scale = features.std(0) + 1e-6
        features = features / scale
        prior = np.zeros(x.shape[1])
        prior[0] = PRIOR * scale[0]
        w, mean, square = prior.copy(), 0.0, 0.0
        for step in range(STEPS):
            s = features @ w
            p = np.exp(s - np.maximum.reduceat(s, start)[of])
            p /= np.add.reduceat(p, start)[of]
            gradient = features.T @ ((p - target) * weight) + PULL * (w - prior)
            mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient ** 2
            w = w - RATE * (1 - step / STEPS) * mean / (1 - 0.9 ** (step + 1)) / (
                np.sqrt(square / (1 - 0.99 ** (step + 1))) + 1e-8)
        return w / scale

    everything = list(range(len(names)))
    print("unlearned (Recall@5, nDCG@10)", measure(x[:, 0]).mean(0).round(2))
    left_out = [measure(x @ fit([t for t in everything if t != s]))[s] for s in everything]
    for name, one in zip(names, left_out):
        print("left out", name, one.round(2))
    print("left out, mean", np.mean(left_out, 0).round(2))
    print("weights of all", dict(zip(WEIGHTS, fit(everything).round(2).tolist())))


if __name__ == "__main__":
    main()
