"""Write the digests the catalogue checks downloads and results against, from a folder of trusted files.

    python scripts/catalogue_digests.py DATA

DATA holds <name>/{train,valid,test}.tsv.xz. Sets of the catalogue that it lacks keep the digests
they have; a set whose counts are not the published ones stops the script.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import tomli_w

from golde.data import catalogue
from golde.data.content import content_of
from golde.data.loading import load_graph

TARGET = Path(catalogue.__file__).with_name("digests.toml")
HEADER = """\
# Written by scripts/catalogue_digests.py; do not edit.
# Per split, SHA-256 of the distinct facts as sorted "head<TAB>relation<TAB>tail<LF>" lines; graph: the
# digest of the whole as runs and result files have it.

"""


def main(data: Path) -> None:
    digests = {}
    for name, entry in catalogue.entries().items():
        if (data / name).is_dir():
            content = content_of(catalogue.read_folder(data / name))
            catalogue.check(replace(entry, digests=None), content, str(data / name))
            whole = load_graph(data / name).digest
            digests[name] = {**content.digests, "graph": whole}
        elif entry.digests is not None:
            digests[name] = dict(entry.digests)
    TARGET.write_text(HEADER + tomli_w.dumps(digests), encoding="utf-8", newline="\n")
    print(f"{TARGET}: {len(digests)} of {len(catalogue.entries())} sets")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
