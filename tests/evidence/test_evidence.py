"""What walks are found to be worth, and what they add to scores."""

from __future__ import annotations

import pytest
import torch

from golde.config import ModelConfig
from golde.data.graph import KnowledgeGraph
from golde.errors import GoldeError
from golde.evaluation.evaluate import evaluate
from golde.evidence import Evidence, Walks, learn, weights
from golde.evidence.weights import Sample, Weights
from golde.inference import gather as gathering
from golde.inference.gather import HARDLY, Beside, _best, _Contest, _others, _Said, gather
from golde.models import build


def families() -> KnowledgeGraph:
    """Children are born where their parents were; where someone was seen says nothing."""
    facts, held_out = [], []
    draw = torch.Generator().manual_seed(0)
    for child in range(60):
        parent, place = f"p{child}", f"town{child % 12}"
        facts += [(f"c{child}", "parent", parent), (parent, "born in", place)]
        facts.append((f"c{child}", "seen in", f"town{int(torch.randint(12, (), generator=draw))}"))
        (held_out if child % 5 == 0 else facts).append((f"c{child}", "born in", place))
    return KnowledgeGraph.from_triples(
        facts, valid=held_out[:6], test=held_out[6:], name="families"
    )


def evidence(graph: KnowledgeGraph, hops: int = 2) -> Evidence:
    walks = Walks(graph.train, len(graph.entities), len(graph.relations), hops)
    return Evidence(walks, learn(walks, seed=0, most_walks=10**7))


def weight(found: Evidence, graph: KnowledgeGraph, asked: str, *body: str) -> float:
    """Of a walk by names of relations, ``⁻`` before one that is walked backwards."""
    number = {name: i for i, name in enumerate(graph.relations.names)}
    number |= {f"⁻{name}": i + len(number) for name, i in list(number.items())}
    code = 0
    for step in body:
        code = code * found.walks.base + number[step] + 1
    code += number[asked] * found.walks.base**found.walks.hops
    at = (found.weights.codes == code).nonzero()
    return float(found.weights.weights[at[0, 0]])


def test_walks_that_lead_to_answers_are_worth_more_than_those_that_do_not() -> None:
    graph = families()
    found = evidence(graph)
    good = weight(found, graph, "born in", "parent", "born in")
    assert good > 1
    assert good > weight(found, graph, "born in", "seen in") + 1


def test_the_fact_that_is_asked_about_does_not_speak_for_itself() -> None:
    """Each of the facts is the only one of its relation, so that nothing leads to its answer without it."""
    facts = [(f"a{i}", "made", f"b{i}") for i in range(50)]
    graph = KnowledgeGraph.from_triples(facts, name="pairs")
    assert len(evidence(graph, 3).weights.codes) == 0


def test_learning_is_the_same_every_time() -> None:
    graph = families()
    first, second = evidence(graph).tensors(), evidence(graph).tensors()
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_scores_of_blocks_of_lists_and_of_pairs_get_the_same() -> None:
    graph = families()
    found = evidence(graph)
    found.scale, found.joined = 0.7, -2.0
    E, queries = len(graph.entities), torch.arange(9)
    direction = torch.arange(9) % 6
    whole = found.added_to(torch.zeros(9, E), queries, direction, range(E))
    blocks = [
        found.added_to(torch.zeros(9, stop - start), queries, direction, range(start, stop))
        for start, stop in ((0, 7), (7, 50), (50, E))
    ]
    torch.testing.assert_close(torch.cat(blocks, 1), whole)
    some = torch.tensor([E - 1, 3, 40, 3])  # neither in order nor each once
    listed = found.added_to(torch.zeros(9, 4), queries, direction, some)
    torch.testing.assert_close(listed, whole[:, some])
    answer = torch.randint(E, (9,), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(found.of_pairs(queries, direction, answer), whole[range(9), answer])
    assert whole.count_nonzero() > 9


def test_a_pair_counts_as_joined_by_other_facts_than_the_one_asked_about() -> None:
    triples = torch.tensor([(0, 0, 1), (2, 0, 3), (2, 1, 3)])
    walks = Walks(triples, 4, 2, 1)
    nothing = Weights(
        torch.empty(0, dtype=torch.int64), torch.empty(0), torch.zeros(4), torch.tensor(0)
    )
    found = Evidence(walks, nothing, joined=-5.0)
    scores = found.added_to(torch.zeros(2, 4), torch.tensor([0, 2]), torch.tensor([0, 0]), range(4))
    assert scores.tolist() == [[0, 0, 0, 0], [0, 0, 0, -5]]


def test_a_model_counts_evidence_in_every_score_of_facts() -> None:
    graph = families()
    model = build(ModelConfig(signature="P3x2 Q4x2"), len(graph.entities), len(graph.relations))
    queries, direction = torch.arange(20), torch.arange(20) % 6
    plain = model.score(queries, direction)
    model.evidence = evidence(graph)
    expected = model.evidence.added_to(plain, queries, direction, range(model.entities))
    assert not torch.equal(plain, expected)
    torch.testing.assert_close(model.score(queries, direction), expected)
    scorer = model.scorer()
    halves = [scorer(queries, direction, 0, 30), scorer(queries, direction, 30, model.entities)]
    torch.testing.assert_close(torch.cat(halves, 1), expected)
    answer = torch.arange(20) + 10
    pairs = model.score_pairs(queries, direction, answer)
    torch.testing.assert_close(pairs, expected[range(20), answer])


def test_validation_says_how_much_evidence_counts() -> None:
    """A model that knows nothing gains all that walks know."""
    graph = families()
    model = build(ModelConfig(signature="P3x2 Q4x2"), len(graph.entities), len(graph.relations))
    found = gather(model, graph, 2, joined=False, most_walks=10**7, seed=0)
    assert found.before < 0.2
    assert found.after > 0.4
    assert found.evidence.scale > 0
    assert found.evidence.joined == 0


def test_a_graph_without_validation_facts_is_refused() -> None:
    graph = KnowledgeGraph.from_triples([("a", "r", "b")], name="one")
    model = build(ModelConfig(signature="E2"), 2, 1)
    with pytest.raises(GoldeError, match="one: has no validation facts to weigh evidence by"):
        gather(model, graph, 2, joined=False, most_walks=10**7, seed=0)


@pytest.mark.parametrize("change", ["codes", "ends", "hops", "beside_the_score"])
def test_damaged_evidence_is_refused(change: str) -> None:
    graph = families()
    tensors = evidence(graph).tensors()
    sizes = len(graph.entities), len(graph.relations)
    again = Evidence.from_tensors(tensors, graph.train, *sizes)
    torch.testing.assert_close(again.tensors(), tensors)
    with pytest.raises(GoldeError, match=r"another graph|damaged"):
        Evidence.from_tensors(tensors | {change: torch.tensor([9, 9])}, graph.train, *sizes)
    del tensors[change]
    with pytest.raises(GoldeError, match="holds no evidence"):
        Evidence.from_tensors(tensors, graph.train, *sizes)


def test_evidence_counts_nothing_where_it_only_misleads() -> None:
    """In train all are born where they were seen; those held out are born elsewhere, as the model knows."""
    facts = [(f"c{i}", r, f"town{i % 12}") for i in range(60) for r in ("born in", "seen in")]
    away = [(f"v{i}", "born in", f"town{(i + 1) % 12}") for i in range(12)]
    facts += [(f"v{i}", "seen in", f"town{i}") for i in range(12)]
    graph = KnowledgeGraph.from_triples(facts, valid=away, name="movers")
    model = build(ModelConfig(kind="distmult", numbers=72), len(graph.entities), 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for i in range(12):  # a number for each pair, under all relations alike
            for name in (f"v{i}", f"town{(i + 1) % 12}"):
                model.entity[graph.entities.id(name), i] = 1.0
        for name, parameter in model.named_parameters():
            if name != "entity":
                parameter.fill_(1.0)
    found = gather(model, graph, 1, joined=False, most_walks=10**7, seed=0)
    assert found.before == pytest.approx(2 / 3)  # each asked about scores like its answer
    assert found.evidence.scale == 0
    assert found.after == found.before


def test_validation_tells_that_joined_pairs_are_not_held_out() -> None:
    """In train whoever is liked is known, in validation nobody is; the model has neighbours first."""
    friends = [(f"a{i}", "knows", f"a{j}") for i in range(30) for j in (i + 1, i + 2) if j < 30]
    held_out = [(f"a{i}", "likes", f"a{i + 3}") for i in range(0, 24, 2)]
    liked = [(f"a{i}", "likes", f"a{i + 1}") for i in range(29)]
    graph = KnowledgeGraph.from_triples([*friends, *liked], valid=held_out, name="friends")
    model = build(ModelConfig(signature="E2", loop_bias=False), len(graph.entities), 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        for i in range(30):  # in a row, under maps that leave all where it is
            model.entity[graph.entities.id(f"a{i}"), 0] = float(i)
    plain = gather(model, graph, 1, joined=False, most_walks=10**7, seed=0)
    assert plain.evidence.joined == 0
    joined = gather(model, graph, 1, joined=True, most_walks=10**7, seed=0)
    assert joined.evidence.joined < 0
    assert joined.after > plain.after


@pytest.mark.parametrize("reciprocal", [True, False])
def test_float64_and_both_ways(reciprocal: bool) -> None:
    """Each fact has a score of its own as an answer either way, in the precision of the model."""
    graph = families()
    config = ModelConfig(signature="P3x2 Q4x2", reciprocal=reciprocal)
    model = build(config, len(graph.entities), len(graph.relations)).double()
    assert model.two_ways == reciprocal
    model.evidence = evidence(graph)
    assert model.two_ways
    head, relation, tail = graph.valid.unbind(1)
    for entity, direction, answer in ((head, relation, tail), (tail, relation + 3, head)):
        pairs = model.score_pairs(entity, direction, answer)
        assert pairs.dtype == torch.float64
        whole = model.score(entity, direction)
        torch.testing.assert_close(
            pairs, whole.gather(1, answer.unsqueeze(1))[:, 0], rtol=1e-6, atol=1e-6
        )


def test_cross_entropy_is_that_of_a_softmax_over_ends_and_none_of_them() -> None:
    """Of one query two ends, the second of which stands for four; of another its answer alone."""
    sample = weights.Sample(
        query=torch.tensor([0, 0, 2]),
        right=torch.tensor([True, False, True]),
        stands_for=torch.tensor([0.0, 4.0, 0.0]).clamp(min=1).log(),
        end=torch.tensor([0, 0, 1, 2]),
        code=torch.tensor([0, 1, 1, 0]),
        strength=torch.tensor([2.0, 1.0, 3.0, 1.0]),
    )
    direction = torch.tensor([1, 0, 0])  # the second query reaches nothing
    found = weights.cross_entropy(
        sample, direction, torch.tensor([0.3, -0.7]), torch.tensor([0.1, 0.2])
    )
    answer, other, alone = 0.2 + 2 * 0.3 - 0.7, 0.2 - 3 * 0.7, 0.1 + 0.3
    first = torch.tensor([answer, other, other, other, other, 0.0]).logsumexp(0) - answer
    third = torch.tensor([alone, 0.0]).logsumexp(0) - alone
    torch.testing.assert_close(found, first + third)


def test_few_ends_that_are_kept_stand_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cross-entropy of a sample is on average nearly that of all ends."""
    graph = families()
    walks = Walks(graph.train, len(graph.entities), len(graph.relations), 3)
    known = weights.KnownFacts(walks.triples, walks.entities, walks.relations)
    ((queries, reached),) = weights._asked(walks, known, torch.arange(100))
    draw = torch.Generator().manual_seed(0)

    def loss(most: int) -> float:
        sample = weights._kept(walks, queries, reached, most, 0, draw)
        whole, codes = weights._numbered([sample], walks.device)
        flat = torch.full((len(codes),), 0.1)
        return float(weights.cross_entropy(whole, queries.direction, flat, torch.zeros(6))) / 100

    every = loss(1 << 20)
    assert loss(1 << 20) == every
    some = [loss(20) for _ in range(20)]
    assert max(some) > min(some)
    assert sum(some) / 20 == pytest.approx(every, abs=0.15)


def test_what_joins_a_pair_has_no_say_where_such_facts_are_never_missing() -> None:
    """Friends, and their friends, are liked; those one only met, and their friends, are not."""
    facts = [(f"a{i}", r, f"b{i}") for i in range(40) for r in ("knows", "likes")]
    facts += [(f"{who}{i}", "knows", f"{whom}{i}") for i in range(40) for who, whom in ("bc", "de")]
    facts += [
        (f"a{i}", r, f"{whom}{i}") for i in range(40) for r, whom in (("likes", "c"), ("met", "d"))
    ]
    graph = KnowledgeGraph.from_triples(facts, name="friends")
    walks = Walks(graph.train, len(graph.entities), len(graph.relations), 2)
    plain, unjoined = (
        Evidence(walks, learn(walks, seed=0, most_walks=10**7, unjoined=u)) for u in (False, True)
    )
    assert weight(plain, graph, "likes", "knows") > 0.5
    with pytest.raises(IndexError):
        weight(unjoined, graph, "likes", "knows")
    assert weight(unjoined, graph, "likes", "knows", "knows") > 0.5


def test_a_known_loop_is_no_wrong_end() -> None:
    """(0, r, 0) is known, and walks lead back to 0: it must not count against (0, r, 2)."""
    triples = torch.tensor([(0, 0, 0), (0, 0, 2), (0, 1, 1), (1, 1, 2), (2, 1, 0)])
    walks = Walks(triples, 3, 2, 3)
    known = weights.KnownFacts(walks.triples, 3, 2)
    ((queries, reached),) = weights._asked(walks, known, torch.tensor([0]))
    assert queries.answer.tolist() == [2]
    assert 0 not in reached.end.tolist()


def test_the_order_of_sums_does_not_show_in_what_is_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a GPU has another order in every run."""
    graph, generator = families(), torch.Generator().manual_seed(0)
    walks = Walks(graph.train, len(graph.entities), len(graph.relations), 3)
    numbered = weights._numbered
    expected = learn(walks, seed=0, most_walks=10**7, unjoined=True)

    def shuffled(samples: list[Sample], device: torch.device) -> tuple[Sample, torch.Tensor]:
        whole, codes = numbered(samples, device)
        ends = torch.randperm(len(whole.query), generator=generator)
        bodies = torch.randperm(len(whole.code), generator=generator)
        by_end = Sample(*(c[ends] for c in whole[:3]), ends.argsort()[whole.end], *whole[4:])
        return by_end._replace(**{n: getattr(by_end, n)[bodies] for n in Sample._fields[3:]}), codes

    monkeypatch.setattr(weights, "_numbered", shuffled)
    found = learn(walks, seed=0, most_walks=10**7, unjoined=True)
    assert torch.equal(found.codes, expected.codes)
    torch.testing.assert_close(found.weights, expected.weights, rtol=0, atol=1e-5)
    torch.testing.assert_close(found.ends, expected.ends, rtol=0, atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_finds_what_a_cpu_finds() -> None:
    graph = families()
    config = ModelConfig(signature="P3x2 Q4x2")
    found = []
    for device in ("cpu", "cuda"):
        model = build(config, len(graph.entities), len(graph.relations)).to(device)
        found.append(gather(model, graph, 3, joined=True, most_walks=10**7, seed=0))
        model.evidence = found[-1].evidence
    on_cpu, on_gpu = found
    assert on_gpu.chosen == on_cpu.chosen
    torch.testing.assert_close(
        on_gpu.evidence.tensors(), on_cpu.evidence.tensors(), rtol=0, atol=1e-3
    )
    queries, direction = torch.arange(20), torch.arange(20) % 6
    same = Evidence.from_tensors(
        on_cpu.evidence.tensors(), graph.train.cuda(), len(graph.entities), len(graph.relations)
    )
    scores = torch.zeros(20, len(graph.entities))
    expected = on_cpu.evidence.added_to(scores, queries, direction, range(len(graph.entities)))
    asked = queries.cuda(), direction.cuda()
    said = same.added_to(scores.cuda(), *asked, range(len(graph.entities)))
    torch.testing.assert_close(said.cpu(), expected)
    answer = torch.arange(20) + 10
    pairs = same.of_pairs(*asked, answer.cuda())
    torch.testing.assert_close(pairs.cpu(), expected[range(20), answer])
    listed = same.added_to(scores[:, answer].cuda(), *asked, answer.cuda())
    torch.testing.assert_close(listed.cpu(), expected[:, answer])


def test_a_graph_whose_walks_never_led_to_an_answer_still_says_which_ends_are_near() -> None:
    """Along a chain nothing leads around a fact, but what is asked for is two steps ahead."""
    chain = [(f"a{i}", "r", f"a{i + 1}") for i in range(60)]
    ahead = [(f"a{i}", "r", f"a{i + 2}") for i in range(0, 58, 3)]
    graph = KnowledgeGraph.from_triples(chain, valid=ahead, name="chain")
    model = build(ModelConfig(signature="P3x2 Q4x2"), len(graph.entities), 1)
    found = gather(model, graph, 2, joined=False, most_walks=10**7, seed=0)
    assert found.before < 0.15
    assert found.after > 0.4


def test_of_single_facts_nothing_is_learned_where_joined_pairs_are_never_missing() -> None:
    graph = families()
    walks = Walks(graph.train, len(graph.entities), len(graph.relations), 1)
    found = learn(walks, seed=0, most_walks=10**7, unjoined=True)
    assert len(found.codes) == int(found.asked) == 0
    model = build(ModelConfig(signature="P3x2 Q4x2"), len(graph.entities), len(graph.relations))
    chosen = gather(model, graph, 1, joined=True, most_walks=10**7, seed=0).chosen
    assert (chosen.scale, chosen.lift) == (0, 0)


def test_the_best_ends_are_those_of_most_worth_besides_the_rivals() -> None:
    said = _Said(
        queries=3,
        entities=100,
        query=torch.tensor([0, 0, 0, 0, 2]),
        answer=torch.tensor([1, 4, 7, 9, 4]),
        worth=torch.tensor([0.5, 2.0, 3.0, 1.0, -1.0]),
        joined=torch.tensor([False, True, False, False, True]),
    )
    ends, missing = said.best(torch.tensor([[7, 50], [4, 1], [7, 8]]))
    assert ends[0, :3].tolist() == [4, 9, 1]
    assert ends[2, 0] == 4
    assert (~missing).sum(1).tolist() == [3, 0, 1]
    worth, reached, joined = said.about(torch.tensor([[9, 5], [4, 1], [5, 4]]))
    assert worth.tolist() == [[1.0, 0], [0, 0], [0, -1.0]]
    assert reached.tolist() == [[True, False], [False, False], [False, True]]
    assert joined.tolist() == [[False, False], [False, False], [False, True]]


@pytest.mark.parametrize("make", ["families", "strangers"])
def test_ranks_among_some_rivals_are_those_among_all(
    make: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every entity is drawn, whatever was listed before counts once; some have few ends."""
    graph = families() if make == "families" else strangers()
    model = build(ModelConfig(signature="P3x2 Q4x2"), len(graph.entities), len(graph.relations))
    exact = evaluate(model.scorer(), graph, "valid", baselines=False).mrr
    for name, number in (("RIVALS", 4), ("REACHED", 3), ("DRAWN", len(graph.entities))):
        monkeypatch.setattr(gathering, name, number)
    found = gather(model, graph, 2, joined=False, most_walks=10**7, seed=0)
    assert found.before == pytest.approx(exact)


@pytest.mark.parametrize(("passed_by", "lifts"), [(5.0, True), (500.0, False)])
def test_where_mrr_hardly_differs_mean_rank_decides(passed_by: float, lifts: bool) -> None:
    """A lift saves one answer from the very end, and costs another little of MRR, or too much."""
    none, ahead = (-torch.inf, 0.0), (torch.inf, 0.0)
    rows = [
        [(0.0, 5.0), (1.0, 0.0), none, none, none, none],  # that walks help
        [(0.0, -3.0), none, none, ahead, none, (-0.01, 0.0)],  # sinks without a lift
        [(3.0, 0.0), none, ahead, none, (2.9, -0.5), none],  # is passed by lifted ones
    ]
    score, worth = torch.tensor(rows).unbind(2)
    kinds = [(1, 1.0), (1, 100.0), (1, 10_000.0), (1, passed_by), (1, 100_000.0)]
    reached = worth != 0
    contest = _Contest(score, worth, reached, *[torch.zeros_like(reached)] * 2, kinds)
    chosen, mrr = _best(contest, contest.mrr(Beside()), walked=True, joined=False)
    lower = chosen._replace(lift=0.0)
    assert (chosen.lift > 0) == lifts
    if not lifts:
        return
    assert contest.mrr(lower) > mrr > contest.mrr(lower) - HARDLY
    assert contest.ranks(chosen).mean() < contest.ranks(lower).mean() / 5


def strangers() -> KnowledgeGraph:
    """People who live where they work, but some in four towns that no training fact mentions."""
    work = [(f"a{i}", "works in", f"town{i % 6}") for i in range(40)]
    live = [(f"a{i}", "lives in", f"town{i % 6}") for i in range(12, 40)]
    others = [(f"a{i}", "lives in", f"town{i % 6}") for i in range(6)]
    moved = [(f"a{i}", "lives in", f"new{i % 4}") for i in range(6, 12)]
    return KnowledgeGraph.from_triples([*work, *live], valid=[*others, *moved], name="strangers")


def test_answers_that_no_training_fact_mentions_are_not_left_behind() -> None:
    graph = strangers()
    new = torch.tensor([graph.entities.id(f"new{i}") for i in range(4)])
    model = build(ModelConfig(kind="distmult", numbers=4), len(graph.entities), 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(1.0)
        model.entity[new] = -1.0  # as negatives were told
    found = gather(model, graph, 1, joined=False, most_walks=10**7, seed=0)
    assert found.chosen.unmentioned > 0
    assert found.after >= found.before
    before = evaluate(model.scorer(), graph, "valid", baselines=False).metrics["both"]["mr"]
    model.evidence = found.evidence
    after = evaluate(model.scorer(), graph, "valid", baselines=False).metrics["both"]["mr"]
    assert after < before / 2


def test_what_is_added_for_them_is_the_same_however_asked_and_stored() -> None:
    graph = strangers()
    number = len(graph.entities)
    walks = Walks(graph.train, number, 2, 1)
    one = Evidence(walks, learn(walks, seed=0, most_walks=10**7), scale=0.5, unmentioned=3.0)
    plain = Evidence(walks, one.weights, scale=0.5)
    entity, direction = torch.arange(10), torch.arange(10) % 4
    zeros = torch.zeros(10, number)
    said = one.added_to(zeros, entity, direction, range(number))
    told = plain.added_to(zeros, entity, direction, range(number))
    mentioned = torch.bincount(graph.train[:, [0, 2]].flatten(), minlength=number) > 0
    torch.testing.assert_close(said - told, 3.0 * ~mentioned.expand(10, -1))
    some = torch.arange(number).flip(0)[:15]
    listed = one.added_to(zeros[:, :15], entity, direction, some)
    torch.testing.assert_close(listed, said[:, some])
    for answer in torch.arange(number).split(10):
        pairs = one.of_pairs(entity, direction, answer)
        torch.testing.assert_close(pairs, said[range(10), answer])
    stored = one.tensors()
    again = Evidence.from_tensors(stored, graph.train, number, 2)
    assert again.unmentioned == 3.0
    stored["beside_the_score"] = stored["beside_the_score"][:2]  # of runs from before
    assert Evidence.from_tensors(stored, graph.train, number, 2).unmentioned == 0.0


def test_entities_that_stand_for_all_are_of_both_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = strangers()
    monkeypatch.setattr(gathering, "DRAWN", 3)
    walks = Walks(graph.train, len(graph.entities), 2, 1)
    ids, kinds = _others(walks, torch.Generator().manual_seed(0))
    assert len(ids.unique()) == 6
    assert walks.unmentioned[ids].tolist() == [False] * 3 + [True] * 3
    assert kinds == [(3, pytest.approx(46 / 3)), (3, pytest.approx(4 / 3))]
