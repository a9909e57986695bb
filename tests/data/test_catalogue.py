from __future__ import annotations

import lzma
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from golde.data import catalogue
from golde.data.catalogue import ContentError, Entry, locate, resolve, verify
from golde.data.content import SPLITS, Counts, content_of, parse_rows, split_digest
from golde.data.download import DownloadError, Patience, Source
from golde.errors import DataError, GoldeError

QUICK = Patience(timeout=1, attempts=2, backoff=0.01)
TEXTS = {
    "train": b"a\tr\tb\nb\tr\tc\nc\ts\ta\n",
    "valid": b"a\ts\tc\n",
    "test": "å\tr\tb\n".encode(),
}


def write(folder: Path, texts: dict[str, bytes] = TEXTS) -> Path:
    folder.mkdir(parents=True)
    for split, text in texts.items():
        (folder / f"{split}.tsv.xz").write_bytes(lzma.compress(text))
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GOLDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GOLDE_DATA", raising=False)
    return tmp_path / "cache" / "data"


@pytest.fixture
def tiny(web, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """A made-up set, served as it should be."""
    web.answers = {f"/{split}.txt": web.send(text) for split, text in TEXTS.items()}
    content = content_of({split: parse_rows(text) for split, text in TEXTS.items()})
    source = Source(web.url("/{split}.txt"))
    entry = Entry("tiny", content.counts, "none", source, content.digests)
    monkeypatch.setattr(catalogue, "entries", lambda: {"tiny": entry})
    return entry


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_download_is_kept_in_the_standard_layout_and_not_repeated(web, tiny, cache) -> None:
    folder = resolve("tiny", patience=QUICK)
    assert folder == cache / "tiny"
    assert left(cache) == ["tiny"]
    files = {split: (folder / f"{split}.tsv.xz").read_bytes() for split in SPLITS}
    assert {split: lzma.decompress(data) for split, data in files.items()} == TEXTS
    web.close()
    assert resolve("tiny", patience=QUICK) == folder


def test_altered_content_is_refused_and_leaves_nothing(web, tiny, cache) -> None:
    web.answers["/train.txt"] = web.send(TEXTS["train"].replace(b"b\tr\tc\n", b""))
    with pytest.raises(ContentError, match=r"txt does not hold 'tiny' \(train: 2 facts .* of 3 "):
        locate(tiny, patience=QUICK)
    assert left(cache) == []


def test_counts_are_checked_where_no_digest_is_known(web, tiny, cache) -> None:
    untold = replace(tiny, digests=None, counts=replace(tiny.counts, entities=5))
    with pytest.raises(ContentError, match=r"\(entities: 4 instead of 5\)"):
        locate(untold, patience=QUICK)
    assert left(cache) == []
    assert locate(replace(tiny, digests=None), patience=QUICK) == cache / "tiny"


def test_a_split_that_does_not_come_leaves_nothing(web, tiny, cache) -> None:
    web.answers["/test.txt"] = web.send(TEXTS["test"], announced=99)
    with pytest.raises(DownloadError, match=r"/test\.txt: cut short"):
        locate(tiny, patience=QUICK)
    assert left(cache) == []


def test_an_interruption_leaves_nothing(tiny, cache, monkeypatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        locate(tiny, patience=QUICK, progress=interrupt)
    assert left(cache) == []
    monkeypatch.setattr(os, "replace", interrupt)  # all is written, the last step is missing
    with pytest.raises(KeyboardInterrupt):
        locate(tiny, patience=QUICK)
    assert left(cache) == []


def test_what_a_killed_process_left_is_never_used_and_later_removed(tiny, cache) -> None:
    stale = write(cache / ".tiny.dead.partial")
    other = write(cache / ".tiny.busy.partial")
    os.utime(stale, (time.time() - 86400,) * 2)
    assert locate(tiny, patience=QUICK) == cache / "tiny"
    assert left(cache) == [other.name, "tiny"]


def test_several_may_download_at_once(tiny, cache) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: locate(tiny, patience=QUICK), range(8)))
    assert set(found) == {cache / "tiny"}
    assert left(cache) == ["tiny"]
    verify("tiny", cache / "tiny")


def test_a_damaged_cache_entry_is_replaced(tiny, cache) -> None:
    write(cache / "tiny", {"train": b"x\ty\tz\n"})
    verify("tiny", locate(tiny, patience=QUICK))
    assert left(cache) == ["tiny"]


def test_a_cache_that_cannot_be_written_says_how_to_choose_another(tiny, cache) -> None:
    cache.parent.write_text("a file where the folder should be")
    with pytest.raises(GoldeError, match="GOLDE_CACHE"):
        locate(tiny, patience=QUICK)


def test_folders_are_searched_in_order(web, tiny, cache, tmp_path, monkeypatch) -> None:
    web.answers.clear()
    statuses = []

    def found(data_dir: Path | None = None) -> Path:
        statuses.append(catalogue.catalogue(data_dir)[0].status)
        return resolve("tiny", data_dir, patience=QUICK)

    with pytest.raises(DownloadError, match="HTTP 404"):
        found()
    cached = write(cache / "tiny")
    assert found() == cached
    theirs = write(tmp_path / "env" / "tiny")
    monkeypatch.setenv("GOLDE_DATA", str(tmp_path / "env"))
    assert found() == theirs
    given = write(tmp_path / "given" / "tiny")
    assert found(tmp_path / "given") == given
    (tmp_path / "empty").mkdir()
    assert found(tmp_path / "empty") == cached
    assert statuses == ["untried", "cached", "at hand", "at hand", "cached"]


def test_a_folder_that_cannot_serve_is_an_error_not_a_download(tiny, tmp_path) -> None:
    write(tmp_path / "own" / "tiny", {"train": TEXTS["train"], "test": TEXTS["test"]})
    with pytest.raises(GoldeError, match=r"tiny has no valid file .*valid\.tsv\.xz"):
        resolve("tiny", tmp_path / "own")
    with pytest.raises(GoldeError, match=r"nowhere is not a folder; --data-dir"):
        resolve("tiny", tmp_path / "nowhere")


def test_a_set_without_an_address_says_what_to_do(tiny, cache) -> None:
    with pytest.raises(GoldeError, match=r"no address.*DIR/tiny .*--data-dir or GOLDE_DATA"):
        locate(replace(tiny, source=None))


def test_verify_reads_any_tab_separated_form_and_names_the_fault(tiny, tmp_path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    for split, text in TEXTS.items():
        (folder / f"{split}.txt").write_bytes(text.replace(b"\n", b"\r\n"))
    assert verify("TINY", folder).counts == Counts(4, 2, 3, 1, 1)
    (folder / "valid.txt").write_bytes(b"a\ts\tc\na b c\n")
    with pytest.raises(DataError, match=r"valid\.txt:2: not three .*'a b c'"):
        verify("tiny", folder)
    (folder / "valid.txt").write_bytes(b"a\ts\tb\n")
    with pytest.raises(ContentError, match=r"\(valid: 1 facts"):
        verify("tiny", folder)


def test_the_digest_depends_on_the_facts_alone() -> None:
    rows = parse_rows(TEXTS["train"])
    assert split_digest([*reversed(rows), rows[0]]) == split_digest(rows)
    assert split_digest(rows[1:]) != split_digest(rows)
    turned = parse_rows(b"b\tr\ta\nc\tr\tb\na\ts\tc\n", columns="trh")
    assert split_digest(turned) == split_digest(rows)


def test_an_unknown_name_gets_the_closest_ones() -> None:
    with pytest.raises(GoldeError, match=r"no set is called 'wn18r'.*wn18rr"):
        resolve("wn18r")
    with pytest.raises(GoldeError, match=r"no set is called 'worldd'; did you mean world\?"):
        catalogue.find("worldd")
    assert catalogue.find("FB15K_237").name == "fb15k-237"


def test_the_shipped_catalogue_is_sound() -> None:
    entries = catalogue.entries()
    assert {"wn18rr", "fb15k-237", "yago3-10", "umls", "nations", "codex-s"} <= set(entries)
    for name, entry in entries.items():
        if entry.digests is not None:
            assert [len(entry.digests[of]) for of in (*SPLITS, "graph")] == [64] * 4, name
        if entry.source is not None:
            assert re.search(r"/[0-9a-f]{40}/", entry.source.url), f"{name} is not pinned"
            assert "{split}" in (entry.source.member or entry.source.url), name
            assert sorted(entry.source.columns) == ["h", "r", "t"], name


@pytest.mark.parametrize(
    ("platform", "expected"),
    [
        ("win32", "local/golde"),
        ("darwin", "home/Library/Caches/golde"),
        ("linux", "home/.cache/golde"),
    ],
)
def test_the_cache_lies_where_the_system_keeps_caches(
    platform: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOLDE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOCALAPPDATA", "local")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    assert catalogue.cache_dir() == Path(expected)
