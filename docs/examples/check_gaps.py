"""How many predicted links are among the facts that were left out of the collection.

python check_gaps.py links.tsv gaps.csv
"""

import csv
import sys
from pathlib import Path

links, gaps = map(Path, sys.argv[1:])
with links.open(encoding="utf-8", newline="") as file:
    rows = csv.DictReader(file, delimiter="\t")
    predicted = [(row["head"], row["relation"], row["tail"]) for row in rows]
with gaps.open(encoding="utf-8", newline="") as file:
    missing = {(row["subject"], row["property"], row["value"]) for row in csv.DictReader(file)}
right = sum(link in missing for link in predicted)
print(f"{right} of the {len(predicted)} links are among the {len(missing)} facts left out")
