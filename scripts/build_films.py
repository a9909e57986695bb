"""The film collection of the guide: made up, with gaps whose answers follow from other facts.

    python scripts/build_films.py          # writes docs/examples/films.csv, gaps.csv and new_films.csv

Films, people and studios are invented; countries and languages are real. Every film is in the language of the
country its studio is based in. About a quarter of the languages and of the countries of origin, and one
direction of some sequels, are left out: they go to ``gaps.csv``, so that predicted links can be checked.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
Fact = tuple[str, str, str]

LANGUAGES = {
    "Austria": "German",
    "Brazil": "Portuguese",
    "Finland": "Finnish",
    "Germany": "German",
    "Greece": "Greek",
    "Ireland": "English",
    "Italy": "Italian",
    "Japan": "Japanese",
    "Kenya": "English",
    "Poland": "Polish",
    "Portugal": "Portuguese",
    "South Korea": "Korean",
}
CONTINENTS = {"Brazil": "South America", "Japan": "Asia", "Kenya": "Africa", "South Korea": "Asia"}
GENRES = {
    "comedy": ["farce", "romantic comedy", "satire"],
    "crime film": ["heist film", "detective film"],
    "drama": ["family drama", "period drama", "courtroom drama"],
    "science fiction": ["space opera", "time-travel film"],
    "horror": ["ghost story", "monster film"],
}
GIVEN = "Ada Bruno Celia Dario Edda Falk Gita Hugo Ines Jonas Kaia Leo Mona Nino Oda Pavel Rhea Silas Thea"
FAMILY = "Abel Brandt Costa Dunn Eriks Faro Grau Horn Iwai Jung Kowal Lind Moss Nakas Osei Pohl"
FIRST = "Amber Blue Cold Distant Early Falling Golden Hollow Inner Lost Northern Open Quiet Secret"
SECOND = "Anchor Bell Coast Door Echo Field Glass Hour Island Lantern Market Orchard Road Shore"
STUDIO = "Anvil Beacon Cedar Delta Ember Falcon Garnet Heron Indigo Juniper Kestrel Lotus"
GAP = 0.25


def collection(seed: int = 0) -> tuple[list[Fact], list[Fact]]:
    """Facts that are told, and those that are left out."""
    draw = random.Random(seed)
    told: set[Fact] = set()
    gaps: set[Fact] = set()

    def tell(fact: Fact, gap: float = 0.0) -> None:
        (gaps if draw.random() < gap else told).add(fact)

    for country, language in LANGUAGES.items():
        tell((country, "official language", language))
        tell((country, "on continent", CONTINENTS.get(country, "Europe")))
    for genre, kinds in GENRES.items():
        for kind in kinds:
            tell((kind, "subgenre of", genre))
    studios = [f"{name} {word}" for name in STUDIO.split() for word in ("Pictures", "Films")]
    home = dict(zip(studios, 2 * list(LANGUAGES), strict=True))
    for studio, country in home.items():
        tell((studio, "based in", country))
    names = [f"{given} {family}" for given in GIVEN.split() for family in FAMILY.split()]
    people = {
        country: [names.pop(draw.randrange(len(names))) for _ in range(12)] for country in LANGUAGES
    }
    for country, some in people.items():
        for person in some:
            tell((person, "citizen of", country))
    titles = [f"{first} {second}" for first in FIRST.split() for second in SECOND.split()]
    draw.shuffle(titles)
    for title in titles[:150]:
        studio = draw.choice(studios)
        director, *cast = draw.sample(people[home[studio]], 4)
        kind = draw.choice([kind for kinds in GENRES.values() for kind in kinds])
        films = [title, f"{title} II"] if draw.random() < 0.3 else [title]
        for film in films:
            tell((film, "produced by", studio))
            tell((film, "directed by", director))
            tell((film, "genre", kind))
            tell((film, "in language", LANGUAGES[home[studio]]), GAP)
            tell((film, "country of origin", home[studio]), GAP)
            for actor in cast:
                tell((film, "stars", actor))
                for pair in ((actor, director), (director, actor)):
                    tell((pair[0], "worked with", pair[1]))
        if len(films) > 1:
            tell((title, "followed by", films[1]))
            tell((films[1], "follows", title), GAP)
    return sorted(told), sorted(gaps - told)


def new_films() -> list[Fact]:
    """Two films that the collection does not have: who made them, and not in which language."""
    told, _ = collection()
    facts: list[Fact] = []
    for film, studio in (("Paper Harbour", "Lotus Films"), ("Winter Ferry", "Beacon Pictures")):
        country = next(t for h, r, t in told if (h, r) == (studio, "based in"))
        people = [h for h, r, t in told if (r, t) == ("citizen of", country)]
        facts += [(film, "produced by", studio), (film, "directed by", people[0])]
        facts += [(film, "stars", person) for person in people[1:3]]
        facts.append((film, "genre", "period drama"))
    return facts


def write(folder: Path) -> None:
    """Write the three files, each with a header; the collection has columns that are no facts too."""
    told, gaps = collection()
    draw = random.Random(1)
    draw.shuffle(told)
    rows = [
        (str(i), head, relation, tail, draw.choice(("catalogue", "press kit")))
        for i, (head, relation, tail) in enumerate(told, 1)
    ]
    columns = ("subject", "property", "value")
    _write(folder / "films.csv", ("row", *columns, "source"), rows)
    _write(folder / "gaps.csv", columns, gaps)
    _write(folder / "new_films.csv", columns, new_films())


def _write(path: Path, header: tuple[str, ...], rows: list[tuple[str, ...]] | list[Fact]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)


if __name__ == "__main__":
    write(EXAMPLES)
